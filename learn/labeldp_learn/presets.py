"""placeholder"""


class BoostingPreset:
    pass


def boosting_preset():
    pass
