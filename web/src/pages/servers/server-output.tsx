import { useSignal } from '@preact/signals'
import type { ServerDetail } from '../../../../src/admin/contract.ts'
import { isAdmin } from '../../api/session.ts'
import { Button } from '../../components/button.tsx'
import { Card } from '../../components/page.tsx'
import { ClockTime } from '../../components/times.tsx'
import { formatCount, pluralize } from '../../format/number.ts'

interface ServerOutputProps {
  readonly lines: ServerDetail['stderr']
  readonly transport: string
  readonly follow: boolean
  onFollow(follow: boolean): void
}

/** What a server's processes wrote to stderr, newest first. Updates only while Follow is on. */
export function ServerOutput({ lines, transport, follow, onFollow }: ServerOutputProps) {
  const kept = useSignal(lines)
  if (follow) kept.value = lines
  const shown = follow ? lines : kept.value
  const last = shown.at(-1)
  const newer = last ? lines.filter(({ at }) => at > last.at).length : lines.length
  const button = lines.length > 0 && (
    <span class="row">
      {!follow && newer > 0 && <span class="quiet small">{formatCount(newer)} new</span>}
      <Button kind="tiny" aria-pressed={follow} onClick={() => onFollow(!follow)}>
        Follow
      </Button>
    </span>
  )
  return (
    <Card title="Output" side={button}>
      {shown.length > 0 ? (
        <>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable areas must be reachable by keyboard */}
          <section class="output" aria-label="Lines of stderr, newest first" tabIndex={0}>
            <ol>
              {shown.toReversed().map(({ at, text }, index) => (
                <li key={`${at} ${shown.length - index}`}>
                  <ClockTime at={at} /> <code>{text}</code>
                </li>
              ))}
            </ol>
          </section>
          <p class="quiet small">
            The last {pluralize(shown.length, 'line')} of stderr of all its processes, newest first.
          </p>
        </>
      ) : (
        <p class="quiet">{whyEmpty(transport)}</p>
      )}
    </Card>
  )
}

function whyEmpty(transport: string): string {
  if (transport !== 'stdio') return 'Output is available only for servers that Toolway starts (stdio).'
  if (!isAdmin.value) return 'Only admins can see the output.'
  return 'The process has written nothing to stderr since it started.'
}
