"""The optimal unbiased ε-DP label randomizer for squared loss over real outputs, with its proof."""
