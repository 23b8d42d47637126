"""Pictures of MuJoCo models, drawn off screen."""

from __future__ import annotations

import importlib
import os
import sys
from types import TracebackType
from typing import Any, Self

import mujoco
import numpy as np
import numpy.typing as npt

from augury.errors import UserError

Image = npt.NDArray[np.uint8]

_HOW_TO_GET_GL = (
    "install Mesa (Debian, Ubuntu: apt install libegl1 libgl1-mesa-dri) and set MUJOCO_GL=egl, "
    "or libosmesa6 and MUJOCO_GL=osmesa"
)


class Camera:
    """Takes pictures of a model; to be closed, or used in a `with` block."""

    def __init__(self, model: mujoco.MjModel, width: int = 320, height: int = 240) -> None:
        self._model = model
        self._data = mujoco.MjData(model)
        # Models come with a small buffer, which limits the size of pictures.
        model.vis.global_.offwidth = max(model.vis.global_.offwidth, width)
        model.vis.global_.offheight = max(model.vis.global_.offheight, height)
        try:
            _prefer_egl_without_a_display()
            self._renderer = mujoco.Renderer(model, height, width)
        except Exception as error:  # each backend fails in its own way
            raise UserError(
                f"no picture without OpenGL ({error}): {_HOW_TO_GET_GL}".replace("\n", " ")
            ) from error

    def picture(
        self, qpos: npt.ArrayLike, view: Any = -1, target: tuple[npt.ArrayLike, npt.ArrayLike] | None = None
    ) -> Image:
        """The model in a pose, seen by a camera: one of its own by name, or a `mujoco.MjvCamera`.

        `target` is the position and quaternion of the model's mocap body, where it has one.
        """
        self._data.qpos[:] = qpos
        if target is not None:
            self._data.mocap_pos[0], self._data.mocap_quat[0] = target
        mujoco.mj_forward(self._model, self._data)
        self._renderer.update_scene(self._data, camera=view)
        return self._renderer.render()

    def close(self) -> None:
        """Give the graphics memory back."""
        self._renderer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _prefer_egl_without_a_display() -> None:
    """MuJoCo chooses a backend when it is imported, and by default one that needs a display."""
    if sys.platform == "linux" and not {"MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        os.environ["MUJOCO_GL"] = "egl"
        importlib.reload(sys.modules[mujoco.Renderer.__module__].gl_context)
