"""What private labels are good for, from verified integers. It decides nothing about privacy."""
