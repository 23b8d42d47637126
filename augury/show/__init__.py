"""Pictures of augmentations: observed transitions beside augmented ones."""

from augury.show.pictures import draw_augmentation

__all__ = ["draw_augmentation"]
