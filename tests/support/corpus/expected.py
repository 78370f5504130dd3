"""What the compiler makes of each model: the target of its nodes and the number of regions, or the error."""

EXPECTED: dict[str, str] = {
    "QLinearConv": "QLinearConv array; 1 region",
    "QLinearConv, weights per tensor": "QLinearConv array; 1 region",
    "QLinearConv, uint8 weights": "QLinearConv array; 1 region",
    "QLinearConv, uint8 weights per channel, no bias": "QLinearConv array; 1 region",
    "QLinearMatMul": "QLinearMatMul array; 1 region",
    "QGemm": "QGemm array; 1 region",
    "QLinearAdd": "QLinearAdd vector; 1 region",
    "QLinearMul": "QLinearMul vector; 1 region",
    "QLinearConcat": "QLinearConcat placement; 1 region",
    "QLinearSigmoid": "QLinearSigmoid table; 1 region",
    "QLinearLeakyRelu": "QLinearLeakyRelu table; 1 region",
    "QLinearAveragePool": "QLinearAveragePool vector; 1 region",
    "QLinearGlobalAveragePool": "QLinearGlobalAveragePool vector; 1 region",
    "QLinearSoftmax": (
        "UnsupportedError: no part of the model can run on the accelerator: QLinearSoftmax_node9: Softmax "
        "divides by what it computes, and the accelerator has no division: run it on the host, or remove it "
        "if only the order of its results matters"
    ),
    "ConvInteger chain": "ConvInteger array, Cast array, Mul array; 1 region",
    "MatMulInteger chain": "MatMulInteger array, Cast array, Mul array; 1 region",
    "integer chains with a float end": (
        "ConvInteger array, Cast array, Mul array, Add array, Relu array, Flatten array, MatMulInteger host, "
        "Cast host, Mul host; 1 region"
    ),
    "dynamic convolution": (
        "UnsupportedError: made is quantized dynamically, its scales are known only when it runs; first run "
        "intloom quantize made --calibration IMAGES -o QUANTIZED.onnx"
    ),
    "dynamic MatMul": (
        "UnsupportedError: made is quantized dynamically, its scales are known only when it runs; first run "
        "intloom quantize made --calibration IMAGES -o QUANTIZED.onnx"
    ),
    "depthwise": "2 Conv array; 1 region",
    "groups": "2 Conv array; 1 region",
    "stride 2": "2 Conv array; 1 region",
    "uint8 weights": "2 Conv array; 1 region",
    "Relu after Conv": "2 Conv array, Relu array; 1 region",
    "INT4 weights": "Conv array; 1 region",
    "INT4 weights per tensor": "Conv array; 1 region",
    "UINT4 weights": "Conv array; 1 region",
    "INT4 weights, int8 activations": "Conv array; 1 region",
    "INT4 weights of a ConvTranspose": "ConvTranspose array; 1 region",
    "INT4 weights of a Gemm": "GlobalMaxPool vector, Flatten placement, Gemm array; 1 region",
    "INT4 weights of a MatMul": "GlobalMaxPool vector, Flatten placement, MatMul array; 1 region",
    "blocked weights": "Conv array, Conv host; 1 region",
    "saturated bias": "Conv array; 1 region",
    "float bias": "Conv array; 1 region",
    "ConvTranspose": "Conv array, ConvTranspose array; 1 region",
    "ConvTranspose over a sequence": "ConvTranspose array; 1 region",
    "flattened 7x7": "Flatten placement, Gemm array; 1 region",
    "flattened 24x24": "Flatten table, Gemm array; 1 region",
    "flattened 17x31": "Flatten table, Gemm array; 1 region",
    "GlobalAveragePool 7x7": "GlobalAveragePool vector, Flatten table, Gemm array; 1 region",
    "GlobalAveragePool 56x56": "GlobalAveragePool array, Flatten table, Gemm array; 1 region",
    "GlobalAveragePool 32x32": "GlobalAveragePool vector, Flatten placement, Gemm array; 1 region",
    "GlobalAveragePool 64x64": "GlobalAveragePool array, Flatten table, Gemm array; 1 region",
    "ReduceMean 40x40": "ReduceMean array, Flatten table, Gemm array; 1 region",
    "ReduceSum 7x7": "ReduceSum vector, Flatten placement, Gemm array; 1 region",
    "SiLU": "Conv array, Sigmoid table, Mul table; 1 region",
    "HardSwish": "Conv array, HardSwish table; 1 region",
    "LeakyRelu": "Conv array, LeakyRelu table; 1 region",
    "Softmax": "Conv array, Softmax host; 1 region",
    "MaxPool": "2 Conv array, MaxPool vector; 1 region",
    "Resize": "2 Conv array, Resize vector; 1 region",
    "Split": "2 Conv array, Split placement; 1 region",
    "network": "3 Conv array, Relu array, Add vector, Concat placement; 1 region",
    "opset 10": "Conv array, MaxPool vector; 1 region",
    "opset 11": "Conv array, MaxPool vector; 1 region",
    "opset 12": "Conv array, MaxPool vector; 1 region",
    "opset 13": "3 Conv array, Relu array, Add vector, Concat placement; 1 region",
    "opset 19": "3 Conv array, Relu array, Add vector, Concat placement; 1 region",
    "opset 21": "3 Conv array, Relu array, Add vector, Concat placement; 1 region",
    "opset 23": "3 Conv array, Relu array, Add vector, Concat placement; 1 region",
    "opset 25": "3 Conv array, Relu array, Add vector, Concat placement; 1 region",
    "opset 12, int8": "Conv array, MaxPool vector; 1 region",
    "opset 17, int8": "3 Conv array, Relu array, Add vector, Concat placement; 1 region",
    "opset 21, int8": "3 Conv array, Relu array, Add vector, Concat placement; 1 region",
    "output_dtype uint8": "Conv array, Add vector, Concat placement; 1 region",
    "output_dtype int8": "Conv array, Add vector, Concat placement; 1 region",
    "zero point int8": "Conv array, Add vector, Concat placement; 1 region",
    "zero point uint8": "Conv array, Add vector, Concat placement; 1 region",
    "output_dtype and zero point int8": "Conv array, Add vector, Concat placement; 1 region",
    "neither output_dtype nor zero point": "Conv array, Add vector, Concat placement; 1 region",
    "output_dtype against zero point": (
        "ModelError: not a valid ONNX model (infer shapes): [ShapeInferenceError] Inference error(s): "
        "(op_type:QuantizeLinear, node name: QuantizeLinear_node4): [TypeInferenceError] output_dtype INT8 "
        "does not match y_zero_point type UINT8 (3 more): correct the model, or export it again"
    ),
    "output_dtype int16": (
        "UnsupportedError: no part of the model can run on the accelerator: QuantizeLinear_node3: "
        "'quantizelinear2' is stored as int16: quantize activations to uint8 or int8 (7 nodes run on the "
        "host; intloom inspect lists them)"
    ),
    "output_dtype uint16": (
        "UnsupportedError: no part of the model can run on the accelerator: QuantizeLinear_node3: "
        "'quantizelinear2' is stored as uint16: quantize activations to uint8 or int8 (7 nodes run on the "
        "host; intloom inspect lists them)"
    ),
    "output_dtype int4": (
        "UnsupportedError: no part of the model can run on the accelerator: QuantizeLinear_node3: "
        "'quantizelinear2' is stored as int4: quantize activations to uint8 or int8 (7 nodes run on the host; "
        "intloom inspect lists them)"
    ),
    "output_dtype float8": (
        "UnsupportedError: node 'QuantizeLinear_node29': its type must be an integer type, not float8e4m3fn: "
        "use int8 or uint8"
    ),
    "zero point int4": (
        "UnsupportedError: no part of the model can run on the accelerator: QuantizeLinear_node4: "
        "'quantizelinear3' is stored as int4: quantize activations to uint8 or int8 (7 nodes run on the host; "
        "intloom inspect lists them)"
    ),
    "blocked activations": "Conv array, Sigmoid host; 1 region",
    "int16 activations": (
        "UnsupportedError: no part of the model can run on the accelerator: QuantizeLinear_node4: "
        "'quantizelinear3' is stored as int16: quantize activations to uint8 or int8 (3 nodes run on the "
        "host; intloom inspect lists them)"
    ),
    "uint16 activations": (
        "UnsupportedError: no part of the model can run on the accelerator: QuantizeLinear_node4: "
        "'quantizelinear3' is stored as uint16: quantize activations to uint8 or int8 (3 nodes run on the "
        "host; intloom inspect lists them)"
    ),
    "uint16 activations of com.microsoft": (
        "UnsupportedError: no part of the model can run on the accelerator: QuantizeLinear_node4: its values "
        "are stored as uint16: quantize activations to uint8 or int8 (5 nodes run on the host; intloom "
        "inspect lists them)"
    ),
    "int8 and uint8 activations": "2 Conv array, Add vector; 1 region",
    "com.microsoft pairs": "3 Conv array, Relu array, Add vector, Concat placement; 1 region",
    "com.microsoft pairs, int8": "3 Conv array, Relu array, Add vector, Concat placement; 1 region",
    "double pair": "2 Conv array; 1 region",
    "double pair, same scale": "2 Conv array; 1 region",
    "uint8 input": "Conv array; 1 region",
    "int8 input": "Conv array; 1 region",
    "uint8 input, NHWC": "Transpose host, Conv array; 1 region",
    "int8 input, NHWC": "Transpose host, Conv array; 1 region",
    "stored movement": "2 Conv array, Slice placement, Concat placement, MaxPool vector; 1 region",
    "stored movement, int8": "2 Conv array, Slice placement, Concat placement, MaxPool vector; 1 region",
    "stored movement with a host operator": "2 Conv array, Exp table, Concat placement, MaxPool vector; 1 region",
    "stored movement with a host operator, int8": (
        "2 Conv array, Exp table, Concat placement, MaxPool vector; 1 region"
    ),
    "Conv-only QDQ": "2 Conv array, 2 Relu array, Conv host, Relu host; 1 region",
    "Conv-only QOperator": "2 QLinearConv array, Sigmoid table, Mul table, Sigmoid host, Mul host; 1 region",
    "alternating regions": "3 Conv array, Exp table, Sin table; 1 region",
    "If, constant": "2 Conv array, Relu table, Identity table; 1 region",
    "If, size": (
        "2 Conv array, Shape placement, Size placement, Equal placement, Relu table, Identity table; 1 region"
    ),
    "If, computed": "2 Conv array, ReduceMax host, Greater host, If host; 2 regions",
    "function": "2 Conv array, Sigmoid table, Mul table; 1 region",
    "nested functions": "2 Conv array, Sigmoid table, Mul table; 1 region",
    "output is an input": "3 Conv array, Relu array, Add vector, Concat placement; 1 region",
    "output is a constant": "3 Conv array, Relu array, Add vector, Concat placement; 1 region",
    "output is a stored value": "3 Conv array, Relu array, Add vector, Concat placement; 1 region",
    "every value is an output": "3 Conv array, Relu array, Add vector, Concat placement; 1 region",
    "node names twice": "3 Conv array, Relu array, Add vector, Concat placement; 1 region",
    "value name twice": (
        "ModelError: node 'DequantizeLinear_node79' produces 'quantizelinear4', which already exists: value "
        "names must be unique"
    ),
    "empty input": (
        "UnsupportedError: dimension 1 of input 'empty' must be fixed, but 'empty.1' is open: set the sizes with "
        "--shape empty=1,N,4,4"
    ),
    "empty part": "2 Conv array, Split placement, Concat host; 2 regions",
    "open batch": "3 Conv array, Relu array, Add vector, Concat placement; 1 region",
    "open height": (
        "UnsupportedError: dimension 2 of input 'image1' must be fixed, but 'height' is open: set the sizes with "
        "--shape image1=1,3,N,8"
    ),
    "contributed host operator": "Conv array, Gelu host; 1 region",
}
