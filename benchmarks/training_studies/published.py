"""Test accuracies, in percent, that papers report, by data set, method and ε.

LabelDP-Pro (ICLR 2024), Table 5 (a) and Table 14; networks of convolutions. The paper does not say
how it accounts for a batch of DP-SGD and LabelDP-Pro; by add/remove adjacency of whole examples, as
is usual, the same noise is called about half the ε that it has under substitution.
"""

SOURCE = "LabelDP-Pro (ICLR 2024), Tables 5 and 14"
ACCOUNTING = "most likely with add/remove accounting, which halves ε"
PUBLISHED = {
    "fashion-mnist": {
        "RR": {0.1: 15.7, 0.2: 19.8, 0.5: 46.9, 1: 75.7, 2: 84.6},
        "ALIBI": {0.1: 10.7, 0.2: 10.7, 0.5: 69.2, 1: 76.5, 2: 82.3},
        "LP-2ST": {0.1: 10.0, 0.2: 10.0, 0.5: 10.9, 1: 68.7, 2: 84.8},
        "DP-SGD": {0.1: 73.4, 0.2: 75.6, 0.5: 79.7, 1: 81.5, 2: 82.3},
        "LabelDP-Pro": {0.1: 75.7, 0.2: 77.9, 0.5: 79.8, 1: 81.7, 2: 82.4},
    },
    "mnist": {
        "RR": {0.1: 7.3, 0.2: 8.1, 0.5: 10.4, 1: 51.3, 2: 96.7},
        "ALIBI": {0.1: 9.7, 0.2: 9.7, 0.5: 82.5, 1: 94.1, 2: 96.6},
        "LP-2ST": {0.1: 10.0, 0.2: 10.0, 0.5: 10.0, 1: 83.3, 2: 96.8},
        "DP-SGD": {0.1: 85.6, 0.2: 87.9, 0.5: 90.9, 1: 92.8, 2: 93.8},
        "LabelDP-Pro": {0.1: 91.1, 0.2: 92.9, 0.5: 94.1, 1: 94.3, 2: 95.4},
    },
}
