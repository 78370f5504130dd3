"""YOLOv8 detection with onnxruntime, written as a class that is called with an image.

python detector_class.py MODEL.onnx IMAGE
"""

import sys
import time

import numpy as np
from onnxruntime import InferenceSession, get_available_providers
from PIL import Image


class YOLOv8:
    def __init__(self, path, conf_thres=0.001):
        self.conf_threshold = conf_thres
        self.initialize_model(path)

    def __call__(self, image):
        return self.detect_objects(image)

    def initialize_model(self, path):
        self.session = InferenceSession(path, providers=get_available_providers())
        self.get_input_details()
        self.get_output_details()

    def detect_objects(self, image):
        input_tensor = self.prepare_input(image)
        outputs = self.inference(input_tensor)
        return self.process_output(outputs)

    def prepare_input(self, image):
        self.img_width, self.img_height = image.size
        resized = np.array(image.resize((self.input_width, self.input_height)))
        return (resized / 255.0).transpose(2, 0, 1)[np.newaxis].astype(np.float32)

    def inference(self, input_tensor):
        start = time.perf_counter()
        outputs = self.session.run(self.output_names, {self.input_names[0]: input_tensor})
        print(f"Inference time: {(time.perf_counter() - start) * 1000:.2f} ms", file=sys.stderr)
        return outputs

    def process_output(self, output):
        predictions = np.squeeze(output[0]).T
        scores = np.max(predictions[:, 4:], axis=1)
        predictions, scores = predictions[scores > self.conf_threshold], scores[scores > self.conf_threshold]
        class_ids = np.argmax(predictions[:, 4:], axis=1)
        scale = [self.img_width / self.input_width, self.img_height / self.input_height]
        return predictions[:, :4] * np.array(scale + scale, dtype=np.float32), scores, class_ids

    def get_input_details(self):
        model_inputs = self.session.get_inputs()
        self.input_names = [entry.name for entry in model_inputs]
        self.input_shape = model_inputs[0].shape
        self.input_height, self.input_width = self.input_shape[2], self.input_shape[3]

    def get_output_details(self):
        model_outputs = self.session.get_outputs()
        self.output_names = [entry.name for entry in model_outputs]


if __name__ == "__main__":
    detector = YOLOv8(sys.argv[1])
    for box, score, class_id in list(zip(*detector(Image.open(sys.argv[2]).convert("RGB")), strict=True))[:10]:
        print(class_id, round(float(score), 6), *np.round(box, 3))
