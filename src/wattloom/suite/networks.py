"""The network of image-recognition-python as a file, made of its layers and of weights by seed.

Owns the graph in ONNX's words. Its shape and its weights are the family's.
"""

from pathlib import Path
from typing import Any

from wattloom.suite.families.image_recognition import CLASSES, LAYERS, SEEN, weights


def write_alexnet(path: Path) -> None:
    """Write the file: a picture of 3x224x224 in, how likely each class is out."""
    import onnx
    from onnx import TensorProto, helper

    nodes, last = _nodes(helper)
    tensors = [onnx.numpy_helper.from_array(weights(number), f"w{number}") for number in range(len(LAYERS))]
    takes = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, SEEN, SEEN])
    gives = helper.make_tensor_value_info(last, TensorProto.FLOAT, [1, CLASSES])
    graph = helper.make_graph(nodes, "alexnet", [takes], [gives], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())


def _nodes(helper: Any) -> tuple[list[Any], str]:
    nodes: list[Any] = []
    last = "image"

    def put(kind: str, *more: str, **settings: Any) -> None:
        nonlocal last
        before, last = last, f"{kind.lower()}{len(nodes)}"
        nodes.append(helper.make_node(kind, [before, *more], [last], **settings))

    for number, layer in enumerate(LAYERS):
        if layer.size:
            put("Conv", f"w{number}", strides=[layer.stride] * 2, pads=[layer.padding] * 4)
        else:
            if LAYERS[number - 1].size:
                put("Flatten")
            put("MatMul", f"w{number}")
        if number < len(LAYERS) - 1:
            put("Relu")
        if layer.pooled:
            put("MaxPool", kernel_shape=[3, 3], strides=[2, 2])
    put("Softmax", axis=1)
    return nodes, last
