import type { WhyView } from '../../../../src/serve/admin/contract.ts'
import { read } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { Card } from '../../parts/page.tsx'
import { Loaded } from '../../parts/states.tsx'
import { query } from '../../routing/location.ts'
import { Verdict } from './verdict.tsx'
import { WhyForm } from './why-form.tsx'

/** The agent and the tool are in the address, so that an explanation can be shared. */
export function Why() {
  const agent = query.value.get('agent') ?? ''
  const tool = query.value.get('tool') ?? ''
  return (
    <>
      <Card title="Explain a decision">
        <WhyForm key={`${agent} ${tool}`} agent={agent} tool={tool} />
      </Card>
      {agent !== '' && tool !== '' && <Answer key={`${agent} ${tool}`} agent={agent} tool={tool} />}
    </>
  )
}

function Answer({ agent, tool }: { readonly agent: string; readonly tool: string }) {
  const why = useResource<WhyView>(read.why(agent, tool), `${agent} ${tool}`)
  return (
    <Loaded of={why} what="the explanation">
      {(data) => <Verdict of={data} />}
    </Loaded>
  )
}
