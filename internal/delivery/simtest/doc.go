// Package simtest runs a market of 500 services for days of market time: services that are well, flaky, broken, malicious, or break on their
// own example, callers who mean ill, and outages of ours and of the rail.
//
// One generator, deterministic by its seed, makes the calls and knows the truth of each: whose doing its end was. What the market makes of a call
// decides whether the next ones are asked, so the generator runs in step with a market. There are two, and one judge:
//
//   - memory is the real policies over a small model of the tables;
//   - database is the real recorder and Postgres. It must come to the verdicts of memory, call by call;
//   - oracle knows the rule of the strikes as the documentation has it, and the truth. It looks at no policy, and says which delistings are right. When
//     an outage of ours was seen it takes from memory, for that depends on who happened to call; by the truth, and by bounds of its own, the run judges
//     that there was one, how far back it excuses, when it ends, and that none was overlooked that failed calls as its services would.
package simtest
