/** Packages and images (without versions) whose servers keep state in their process, so callers must not share them. */
const stateful: ReadonlySet<string> = new Set([
  // Browsers
  '@playwright/mcp',
  'mcp-server-playwright',
  '@executeautomation/playwright-mcp-server',
  'mcr.microsoft.com/playwright/mcp',
  'mcp/playwright',
  '@modelcontextprotocol/server-puppeteer',
  'puppeteer-mcp-server',
  'mcp/puppeteer',
  'chrome-devtools-mcp',
  '@browsermcp/mcp',
  '@browserbasehq/mcp',
  '@browserbasehq/mcp-server-browserbase',
  '@agent-infra/mcp-server-browser',
  'mcp-server-browser-use',
  'browser-use-mcp-server',
  '@angiejones/mcp-selenium',
  // Memory and reasoning
  '@modelcontextprotocol/server-memory',
  'mcp/memory',
  '@modelcontextprotocol/server-sequential-thinking',
  'mcp/sequentialthinking',
  // Shells and notebooks
  '@wonderwhy-er/desktop-commander',
  'jupyter-mcp-server',
])

/** Whether the command or an argument names a stateful server. */
export function keepsState({ command, args }: Readonly<Record<string, unknown>>): boolean {
  const words = [command, ...(Array.isArray(args) ? args : [])]
  return words.some((word) => typeof word === 'string' && namesOf(word).some((name) => stateful.has(name)))
}

export const statefulNote = (name: string): string =>
  `mcpServers.${name} keeps state in its process, so each caller gets its own process (session: caller)`

/** Possible package names in a word such as `--package=@x/y@1.2`, `mcp/y:latest` or `/node_modules/@x/y/cli.js`. */
function namesOf(word: string): string[] {
  const text = word.replaceAll('\\', '/').replace(/^--?[\w-]+=/, '')
  const installed = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(text)?.[1]
  const bare = text.replace(/(?<=.)(@|:|==)[^/@:=]+$/, '')
  const program = bare.slice(bare.lastIndexOf('/') + 1).replace(/\.(cmd|exe|js|mjs)$/, '')
  return [bare, program, ...(installed ? [installed] : [])]
}
