// zip-node: three files as one zip archive, by JSZip.
"use strict";

const JSZip = require("jszip");

exports.handler = async (event) => {
  const archive = new JSZip();
  for (const { name, text } of event.files) archive.file(name, text);
  const how = { type: "base64", compression: "DEFLATE", compressionOptions: { level: 6 } };
  return { archive: await archive.generateAsync(how) };
};
