// One conversation of an official TypeScript client with a server on stdio, printed as JSON.
// usage: node client.mjs {sdk1|sdk2|sdk2-auto} COMMAND ARGS...

const [flavour, command, ...args] = process.argv.slice(2);

async function load() {
  if (flavour === "sdk1") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    return { Client, StdioClientTransport, options: {} };
  }
  const { Client } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const options = flavour === "sdk2-auto" ? { versionNegotiation: { mode: "auto" } } : {};
  return { Client, StdioClientTransport, options };
}

const { Client, StdioClientTransport, options } = await load();
const client = new Client({ name: "typescript", version: "1" }, options);
const failures = [];
client.onerror = (error) => failures.push(String(error));
const transport = new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
// SDK 1 keeps what was negotiated to itself, but tells a transport that asks.
let told;
transport.setProtocolVersion = (version) => (told = version);
await client.connect(transport);

const call = async (name, given) => {
  const { isError, structuredContent, content } = await client.callTool({ name, arguments: given });
  return { isError: Boolean(isError), structuredContent, text: content[0].text };
};
const { tools } = await client.listTools();
const { resources } = await client.listResources();
const report = {
  version: client.getNegotiatedProtocolVersion?.() ?? told,
  server: client.getServerVersion(),
  instructions: client.getInstructions(),
  tools: tools.map((tool) => tool.name),
  calls: {
    sage_get_knowledge: await call("sage_get_knowledge", { layer: "core" }),
    sage_search: await call("sage_search", { query: "fixtures" }),
    sage_get_context: await call("sage_get_context", { task_type: "coding" }),
    sage_info: await call("sage_info", {}),
  },
  refusal: await call("sage_search", { query: "x", limit: 99 }),
  resources: resources.map((resource) => resource.uri),
  page: (await client.readResource({ uri: "knowledge://practices/testing" })).contents[0],
  prompt: (
    await client.getPrompt({ name: "sage_task_prompt", arguments: { task_type: "coding" } })
  ).messages.length,
  completion: (
    await client.complete({
      ref: { type: "ref/resource", uri: "knowledge://{layer}/{topic*}" },
      argument: { name: "topic", value: "test" },
      context: { arguments: { layer: "practices" } },
    })
  ).completion.values,
};
await client.close();
console.log(JSON.stringify({ ...report, failures }));
