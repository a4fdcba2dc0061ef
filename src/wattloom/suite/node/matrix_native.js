// matrix-native-node: the product of two matrices, in plain JavaScript.
"use strict";

exports.handler = ({ a, b }) => {
  const product = a.map((row) => {
    const line = new Array(b[0].length).fill(0);
    for (let k = 0; k < b.length; k++) {
      for (let j = 0; j < line.length; j++) line[j] += row[k] * b[k][j];
    }
    return line;
  });
  return { product };
};
