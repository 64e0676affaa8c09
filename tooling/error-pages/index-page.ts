import { type ErrorCode, errorKinds } from '../../src/core/errors.ts'
import type { PageText } from './page-text.ts'

const introduction = `<!-- Generated from tooling/error-pages by \`npm run generate\`. -->

# Errors

Every error that Toolway creates has a stable code, a message that says what happened and what to do, and the same
object with details: \`{ code, rule?, server?, retryAfterMs? }\`.

- A tool call that is refused or fails returns a tool result with \`isError: true\`, the message as text, and the object in
  \`_meta["dev.toolway/error"]\`, so that a model can act on it.
- For resources and prompts it is a JSON-RPC error with Toolway's own number and the object in \`data\`.
- Malformed requests and unknown methods, tools and servers are JSON-RPC errors; invalid credentials are HTTP 401 or 403.
- A server's own results and errors are passed on unchanged.
- \`rule\` names the setting that decided. \`retryAfterMs\` says when to retry, and so does the HTTP header \`Retry-After\`
  if the response is plain JSON.
- The command line adds four codes: \`USAGE\` and \`CONFIG\` (exit code 2), \`CANNOT_LISTEN\` (the address or port is not
  available; the message says what to change) and \`NO_GATEWAY\` (no gateway is running; exit code 3).

Each code has a page with causes, advice for models and operators, and an example.`

/** The table of all codes, in Markdown. */
export function indexPage(texts: Readonly<Record<ErrorCode, PageText>>): string {
  const codes = Object.keys(errorKinds) as ErrorCode[]
  const rows = codes.map((code) => {
    const { rpc, http } = errorKinds[code]
    const { happened, remedy } = texts[code]
    return `| [\`${code}\`](errors/${code}.md) | ${rpc} | ${http} | ${happened} | ${remedy} |`
  })
  const head = '| code | number | HTTP | what happened | what to do |\n| --- | --- | --- | --- | --- |'
  return `${introduction}\n\n${head}\n${rows.join('\n')}\n`
}
