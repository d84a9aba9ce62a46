// shop is what the middlewares stand in front of: /work does its work, /upfront does it for a payment that was settled before, /broken fails. It returns how often each URL came through to it.
export function shop(app) {
  const asked = {};
  const handle = (path, status, answer) =>
    app.get(path, (request, response) => {
      asked[request.url] = (asked[request.url] ?? 0) + 1;
      response.status(status).json(answer);
    });
  handle("/work", 200, { done: true });
  handle("/upfront", 200, { done: true });
  handle("/broken", 500, { error: "broken inside" });
  return asked;
}
