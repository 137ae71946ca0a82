"""Learning parameters: values at which the evidence is largest."""

from pathmix.methods.learning.learning import learn as learn
from pathmix.methods.learning.setting import Setting as Setting
