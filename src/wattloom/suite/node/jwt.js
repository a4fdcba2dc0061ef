// jwt-node: a token is signed and verified, and one that was changed is not, by jsonwebtoken.
"use strict";

const crypto = require("node:crypto");
const jwt = require("jsonwebtoken");

const keys = new Map(); // read once, as a service would

function key(pem, read) {
  if (!keys.has(pem)) keys.set(pem, read(pem));
  return keys.get(pem);
}

function verified(token, publicKey) {
  try {
    return jwt.verify(token, publicKey, { algorithms: ["RS256"] });
  } catch (problem) {
    if (problem.message === "invalid signature") return null;
    throw problem;
  }
}

// With another first letter of the signature.
function changed(token) {
  const at = token.lastIndexOf(".") + 1;
  return token.slice(0, at) + (token[at] === "A" ? "B" : "A") + token.slice(at + 1);
}

exports.handler = (event) => {
  const publicKey = key(event.public_key, crypto.createPublicKey);
  const token = jwt.sign(event.claims, key(event.key, crypto.createPrivateKey), { algorithm: "RS256" });
  const found = verified(token, publicKey);
  return {
    token,
    verified: found !== null && Object.keys(event.claims).every((name) => found[name] === event.claims[name]),
    tampered: verified(changed(token), publicKey) !== null,
  };
};
