// video-to-gif-node: a film as a moving GIF, by ffmpeg with one thread.
"use strict";

const { spawn } = require("node:child_process");

exports.handler = (event) => {
  const filters =
    `fps=${event.rate},scale=${event.width}:${event.height}:flags=bicubic,` +
    "split[a][b];[a]palettegen[p];[b][p]paletteuse";
  const one = ["-threads", "1"];
  const into = ["-v", "error", ...one, "-filter_threads", "1", "-i", "pipe:0", "-filter_complex", filters];
  return new Promise((done, fail) => {
    const ffmpeg = spawn(event.ffmpeg, [...into, "-filter_complex_threads", "1", ...one, "-f", "gif", "pipe:1"]);
    const parts = [];
    let said = "";
    ffmpeg.stdout.on("data", (part) => parts.push(part));
    ffmpeg.stderr.on("data", (part) => (said += part));
    ffmpeg.stdin.on("error", () => {}); // one that ends early says why
    ffmpeg.on("error", fail);
    ffmpeg.on("close", (code) => {
      if (code !== 0) fail(new Error(`ffmpeg ended with ${code}: ${said.slice(-500)}`));
      else done({ gif: Buffer.concat(parts).toString("base64") });
    });
    ffmpeg.stdin.end(Buffer.from(event.video, "base64"));
  });
};
