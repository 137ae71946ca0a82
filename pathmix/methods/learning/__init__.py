"""Learning parameters: values at which the evidence is largest."""

from pathmix.methods.learning.learn import learn as learn
from pathmix.methods.learning.setting import Setting as Setting
