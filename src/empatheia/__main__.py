"""``python -m empatheia``: the same as the command ``empatheia``."""

from empatheia.cli import main

main()
