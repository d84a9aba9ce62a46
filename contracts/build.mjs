// Compiles each contract into artifacts/, or with --check says whether what lies there is what a rebuild gives.
//
//   node build.mjs           write the artifacts
//   node build.mjs --check   exit 1 where a committed artifact differs, and write nothing
//
// The bytes depend on the source, the compiler and the settings below, and on nothing of the machine: the compiler is the one that
// package-lock.json pins, and no hash of the metadata is appended.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import solc from "solc";

const contracts = ["TestUSDC", "TestWallet"];

const settings = {
  evmVersion: "cancun",
  optimizer: { enabled: true, runs: 200 },
  metadata: { bytecodeHash: "none" },
};

function compile(contract) {
  const source = `${contract}.sol`;
  const input = {
    language: "Solidity",
    sources: { [source]: { content: readFileSync(new URL(source, import.meta.url), "utf8") } },
    settings: {
      ...settings,
      outputSelection: { "*": { "*": ["abi", "evm.bytecode.object", "evm.deployedBytecode"] } },
    },
  };
  const output = JSON.parse(solc.compile(JSON.stringify(input)));
  // A warning fails the build too: in twenty lines of output nobody would read it.
  const complaints = output.errors ?? [];
  if (complaints.length > 0) {
    throw new Error(complaints.map((c) => c.formattedMessage).join("\n"));
  }
  const { abi, evm } = output.contracts[source][contract];
  // Runtime code with immutables or libraries has holes that only a deployment fills, and a genesis file deploys nothing.
  for (const holes of [evm.deployedBytecode.immutableReferences, evm.deployedBytecode.linkReferences]) {
    if (Object.keys(holes ?? {}).length > 0) {
      throw new Error(`${contract} has immutables or libraries: its runtime code cannot be placed by genesis`);
    }
  }
  return {
    contract,
    source,
    compiler: { name: "solc", version: solc.version(), settings },
    abi,
    bytecode: `0x${evm.bytecode.object}`,
    deployedBytecode: `0x${evm.deployedBytecode.object}`,
  };
}

let stale = false;
for (const contract of contracts) {
  const artifactURL = new URL(`artifacts/${contract}.json`, import.meta.url);
  const built = `${JSON.stringify(compile(contract), null, 2)}\n`;
  if (!process.argv.includes("--check")) {
    writeFileSync(artifactURL, built);
  } else if (!existsSync(artifactURL) || readFileSync(artifactURL, "utf8") !== built) {
    console.error(`${artifactURL.pathname} is not what ${contract}.sol compiles to: run "go generate ./contracts"`);
    stale = true;
  }
}
process.exit(stale ? 1 : 0);
