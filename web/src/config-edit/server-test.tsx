import type { ServerTest } from '../../../src/admin/contract.ts'
import { CodeBlock } from '../components/code-block.tsx'
import { Note } from '../components/states.tsx'
import { StatusBadge } from '../components/status-badge.tsx'
import { healthStatuses } from '../components/statuses.ts'
import { formatDuration } from '../format/duration.ts'
import { formatCount, pluralize } from '../format/number.ts'

const working = { tone: 'ok', shape: 'dot', label: 'works' } as const
const failing = { tone: 'bad', shape: 'cross', label: 'failed' } as const

/** What a server offered, or why it failed, when it was started once. */
export function ServerTestResult({ test }: { readonly test: ServerTest }) {
  const { name, ok, error, needsSignIn, tools, prompts, resources, tokens, findings, remarks, stderr } = test
  const status = ok ? working : needsSignIn ? healthStatuses['needs-auth'] : failing
  return (
    <section class="stack tight" aria-label={`Test of ${name}`}>
      <p class="row">
        <StatusBadge status={status} /> <strong>{name}</strong>
        <span class="quiet">
          {[
            test.reports,
            test.transport,
            test.protocolVersion,
            test.startMs === null ? null : formatDuration(test.startMs),
          ]
            .filter(Boolean)
            .join(', ')}
        </span>
      </p>
      {error !== null && !needsSignIn && <p class="tone-bad pre">{error}</p>}
      {needsSignIn && (
        <p>
          It requires OAuth. Save it, then sign in on its page.{' '}
          {test.lacksOAuth && (
            <>
              Toolway adds <code>auth: {'{ type: oauth }'}</code> to its definition.
            </>
          )}
        </p>
      )}
      {ok && (
        <p>
          {pluralize(tools.length, 'tool')} ({formatCount(tokens)} tokens), {pluralize(prompts.length, 'prompt')},{' '}
          {pluralize(resources.length, 'resource')}
        </p>
      )}
      {tools.length > 0 && (
        <details>
          <summary>Tools</summary>
          <ul>
            {tools.map((tool) => (
              <li key={tool.name}>
                <code>{tool.name}</code> <span class="quiet">{formatCount(tool.tokens)} tokens</span>
              </li>
            ))}
          </ul>
        </details>
      )}
      {[...prompts, ...resources].length > 0 && (
        <details>
          <summary>Prompts and resources</summary>
          <ul>
            {[...prompts, ...resources].map((one) => (
              <li key={one}>
                <code>{one}</code>
              </li>
            ))}
          </ul>
        </details>
      )}
      {findings.length > 0 && (
        <Note tone="warn">
          <p>
            <strong>Suspicious content in its definitions</strong>
          </p>
          {findings.map(({ item, kind, where, excerpt }) => (
            <p key={`${item} ${kind} ${where}`}>
              {item}: {kind} in {where}: “{excerpt}”
            </p>
          ))}
        </Note>
      )}
      {remarks.map((remark) => (
        <p key={remark} class="quiet">
          {remark}
        </p>
      ))}
      {!ok && stderr.length > 0 && <CodeBlock text={stderr.join('\n')} label="Output of the server" wrap />}
    </section>
  )
}
