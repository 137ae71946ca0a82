"""Files of plain parts: what is kept beyond a process."""
