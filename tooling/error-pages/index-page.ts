import { type ErrorCode, errorKinds } from '../../src/core/errors.ts'
import type { PageText } from './page-text.ts'

const introduction = `<!-- Generated from tooling/error-pages by \`npm run generate\`. -->

# Errors

Every error that Toolway creates has a stable code, a message that says what happened and what to do, and an object with
details: \`{ code, rule?, server?, retryAfterMs? }\`. In this object, \`rule\` names the setting that caused the error, and
\`retryAfterMs\` is the number of milliseconds to wait before a retry.

- A tool call that is refused or fails returns a tool result with \`isError: true\`, the message as text, and the object
  in \`_meta["dev.toolway/error"]\`, so that the model sees the error and can act on it.
- If reading a resource or getting a prompt is refused or fails, the response is a JSON-RPC error with the code's number
  (see the table) and the object in \`data\`.
- Malformed requests and unknown methods, tools and servers are answered with a JSON-RPC error, and invalid credentials
  with HTTP 401 or 403. For an unknown resource, clients with a protocol revision up to 2025-11-25 get the number -32002.
- Results and errors that a server returns are passed on unchanged.
- If the error has a \`retryAfterMs\` and the response is plain JSON, not an event stream, the HTTP header \`Retry-After\`
  also says when to retry.
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
