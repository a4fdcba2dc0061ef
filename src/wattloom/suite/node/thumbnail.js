// thumbnail-node: a picture made small, by sharp with one thread.
"use strict";

const sharp = require("sharp");

sharp.concurrency(1);
sharp.cache(false); // the same picture again is work again

exports.handler = async (event) => {
  const { data, info } = await sharp(Buffer.from(event.image, "base64"))
    .resize(event.width, event.height, { fit: "fill", kernel: "cubic" })
    .png()
    .toBuffer({ resolveWithObject: true });
  return { image: data.toString("base64"), width: info.width, height: info.height };
};
