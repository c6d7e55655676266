"""What the sub-commands of `memory` do, one function each: translate, one domain call, translate back."""
