// shop is what both middlewares stand in front of: /work does its work, /broken fails, and asked counts how often each came through.
export function shop(app) {
  const asked = { work: 0, broken: 0 };
  app.get("/work", (request, response) => {
    asked.work++;
    response.json({ done: true });
  });
  app.get("/broken", (request, response) => {
    asked.broken++;
    response.status(500).json({ error: "broken inside" });
  });
  return asked;
}
