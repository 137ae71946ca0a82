"""Programs with known answers, on which inference with default options is put to the test."""
