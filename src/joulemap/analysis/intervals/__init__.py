"""From contributions to an interval: distributions, Monte Carlo, budgets. It must not know what is being measured."""
