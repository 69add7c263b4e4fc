"""Templates and specs of other objects of Argo that a run refers to."""
