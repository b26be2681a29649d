// A client in Node: METHOD URL, the body on standard input, credentials in the environment.
// Prints the status and the type of the content, an empty line, and the body.
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";

const [method, url] = process.argv.slice(2);
const { AUTH, API_KEY, API_SECRET, TOKEN } = process.env;
const body = readFileSync(0);
const hmac = (...parts) => parts.reduce((sum, part) => sum.update(part), createHmac("sha256", API_SECRET));
const base64 = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

const headers = { "Content-Type": "application/json" };
if (AUTH === "signature") {
  const stamp = String(Date.now());
  headers["x-svc-apikey"] = API_KEY;
  headers["x-svc-timestamp"] = stamp;
  headers["x-svc-sign"] = hmac(API_KEY, body, stamp).digest("hex");
} else if (AUTH === "jwt") {
  const claims = `${base64({ alg: "HS256" })}.${base64({ iss: API_KEY, exp: Math.floor(Date.now() / 1000) + 60 })}`;
  headers.Authorization = `jwt ${claims}.${hmac(claims).digest("base64url")}`;
} else {
  headers.Authorization = AUTH === "bearer" ? `Bearer ${TOKEN}` : TOKEN;
}

const answer = await fetch(url, { method, headers, body: body.length ? body : undefined });
process.stdout.write(`${answer.status} ${answer.headers.get("content-type")}\n\n`);
for await (const piece of answer.body) process.stdout.write(piece);
