// listen serves an Express application at a free port of the loopback address and returns its URL.
export async function listen(app) {
  const server = app.listen(0, "127.0.0.1");
  await new Promise((resolve, reject) => server.once("listening", resolve).once("error", reject));
  return `http://127.0.0.1:${server.address().port}`;
}
