import { type ErrorCode, errorKinds } from '../../src/core/errors.ts'
import type { PageText } from './page-text.ts'

const introduction = `<!-- Generated from tooling/error-pages by \`npm run generate\`. -->

# Errors

Every failure of Toolway's own has a code that does not change, a sentence that says what happened and what to do, and
the same small object beside it: \`{ code, rule?, server?, retryAfterMs? }\`.

- A tool call that is refused or fails is answered with a tool result: \`isError: true\`, the sentence as text, and the
  object in \`_meta["dev.toolway/error"]\`, so that a model can act on it.
- For resources and prompts it is a JSON-RPC error with our own number and the object in \`data\`.
- Malformed requests, unknown methods, tools and servers are JSON-RPC errors; bad credentials are HTTP 401 or 403.
- What a server answers, also its errors, passes unchanged.
- \`rule\` is the key of the configuration that decided; \`retryAfterMs\` says when to come back, and so does the HTTP
  header \`Retry-After\` where the answer is plain JSON.
- The command line adds four of its own: \`USAGE\` and \`CONFIG\` (exit code 2), \`CANNOT_LISTEN\` (the address or port
  cannot be had; the message says what to change) and \`NO_GATEWAY\` (none runs that could be asked; exit code 3).

Each code has a page with its causes, what a model and what an operator should do, and an example.`

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
