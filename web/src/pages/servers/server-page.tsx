import { read } from '../../api/endpoints.ts'
import { liveServers } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { isAdmin } from '../../api/session.ts'
import { Code } from '../../parts/code.tsx'
import { healthLooks } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'
import { Card, Page } from '../../parts/page.tsx'
import { Loaded } from '../../parts/states.tsx'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { FigureTiles } from '../figures.tsx'
import { ServerActions } from './server-actions.tsx'
import { ServerFacts } from './server-facts.tsx'

export function ServerPage({ name }: { readonly name: string }) {
  const asked = useResource(read.server(name), name, { every: 5000 })
  const live = liveServers.value?.find((server) => server.name === name)
  const server = { ...asked, data: asked.data && { ...asked.data, ...live } }
  const { data } = server
  return (
    <Page
      title={name}
      heading={
        <span class="row">
          {name} {data && <Mark look={healthLooks[data.health]} chip />}
        </span>
      }
      note={data?.description}
      back={{ href: pathTo('servers'), name: 'Servers' }}
      actions={data && <ServerActions server={data} done={asked.reload} />}
    >
      <Loaded of={server} what={`the server ${name}`}>
        {(data) => (
          <>
            <FigureTiles of={data.calls} label={`Statistics of ${name}`} />
            <div class="row">
              <a class="button" href={withQuery(pathTo('tools'), { server: name })}>
                View tools
              </a>
              <a class="button" href={withQuery(pathTo('calls'), { server: name })}>
                View calls
              </a>
              {isAdmin.value && (
                <a class="button" href={withQuery(pathTo('audit'), { server: name })}>
                  View audit records
                </a>
              )}
            </div>
            <div class="grid-2">
              <ServerFacts server={data} />
              <Stderr lines={data.stderr} transport={data.transport} />
            </div>
          </>
        )}
      </Loaded>
    </Page>
  )
}

function Stderr({ lines, transport }: { readonly lines: readonly string[]; readonly transport: string }) {
  return (
    <Card title="Recent output">
      {lines.length > 0 ? (
        <Code text={lines.join('\n')} label="End of stderr" wrap />
      ) : (
        <p class="quiet">
          {transport !== 'stdio'
            ? 'Output is available only for servers that Toolway starts (stdio).'
            : isAdmin.value
              ? 'The process has written nothing to stderr since it started.'
              : 'Only admins can see the output.'}
        </p>
      )}
    </Card>
  )
}
