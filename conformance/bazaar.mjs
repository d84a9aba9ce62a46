// Judges with the official extensions what our challenges declare to catalogues. Reads from standard input a JSON array of
// {"name", "challenge", "body"}: a value of PAYMENT-REQUIRED, and the x402 v1 body beside it, or null. Prints an array of
// {"name", "errors", "method", "resource", "template", "v1"}: what is wrong, and under what a facilitator would catalogue it.
import { decodePaymentRequiredHeader } from "@x402/core/http";
import {
  extractDiscoveryInfo,
  extractDiscoveryInfoV1,
  validateDiscoveryExtension,
  validateDiscoveryExtensionSpec,
  validateRouteTemplate,
} from "@x402/extensions/bazaar";
import { text } from "node:stream/consumers";

function judge({ name, challenge, body }) {
  const required = decodePaymentRequiredHeader(challenge);
  const declaration = required.extensions?.bazaar;
  if (declaration === undefined) return { name, errors: ["no declaration"] };
  const errors = [validateDiscoveryExtension(declaration), validateDiscoveryExtensionSpec(declaration)].flatMap(
    result => (result.valid ? [] : result.errors),
  );
  if (declaration.routeTemplate !== undefined && validateRouteTemplate(declaration.routeTemplate) === undefined) {
    errors.push(`route template ${declaration.routeTemplate}`);
  }
  // As a facilitator sees it: echoed by the client in a payment.
  const payment = { x402Version: 2, resource: required.resource, accepted: required.accepts[0], extensions: required.extensions, payload: {} };
  const found = extractDiscoveryInfo(payment, required.accepts[0]);
  if (found === null) errors.push("a facilitator finds nothing to catalogue");
  const v1 = body === null ? null : extractDiscoveryInfoV1(body.accepts[0]);
  if (body !== null && v1 === null) errors.push("a facilitator of x402 v1 finds nothing to catalogue");
  return { name, errors, method: found?.method, resource: found?.resourceUrl, template: found?.routeTemplate, v1 };
}

console.log(JSON.stringify(JSON.parse(await text(process.stdin)).map(judge)));
