"""``python -m labeldp_trainer train.yaml``."""

from labeldp_trainer.cli import train_command

if __name__ == "__main__":
    train_command(prog_name="python -m labeldp_trainer")
