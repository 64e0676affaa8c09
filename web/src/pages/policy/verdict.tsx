import type { WhyView } from '../../../../src/serve/admin/contract.ts'
import { Code } from '../../parts/code.tsx'
import { allowedLook, deniedLook } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'
import { Card } from '../../parts/page.tsx'
import './verdict.css'

/** A decision, the rule that made it, and all rules considered. */
export function Verdict({ of }: { readonly of: WhyView }) {
  const { agent, server, tool, allowed, rule, sentence, considered } = of
  const verdict = (
    <>
      {agent} {allowed ? 'may' : 'may not'} use {server}.{tool}
    </>
  )
  return (
    <Card title={verdict} side={<Mark look={allowed ? allowedLook : deniedLook} chip />}>
      <div class="stack">
        <p>{sentence}</p>
        <p>
          Decided by <code>{rule}</code>
        </p>
        <h3>Rules considered, in order</h3>
        <ol class="considered">
          {considered.map((step, index) => (
            <li key={index} data-decides={step.rule === rule || undefined}>
              <code>{step.rule}</code>
              <span>{step.text}</span>
            </li>
          ))}
        </ol>
        <Code text={`toolway why ${agent} ${server}.${tool}`} label="Equivalent command" />
      </div>
    </Card>
  )
}
