import type { PolicyService } from '../../../src/admin/policy/policy.ts'
import { policyPreview, policyReplay } from '../../../src/admin/views.fixture.ts'
import type { Scene } from './scene.ts'

const rules = {
  type: 'object',
  properties: {
    servers: { type: 'array', items: { type: 'string' }, description: 'Servers, or patterns with *.' },
    tools: { type: 'object', additionalProperties: { type: 'array', items: { type: 'string' } } },
  },
  additionalProperties: false,
}
const agent = { type: 'object', properties: { allow: rules, deny: rules, perMinute: { type: 'number' } } }

/** The policy of a scene. Every edit has the same effect. */
export const createScenePolicy = ({ agents }: Scene): Omit<PolicyService, 'agents' | 'matrix' | 'why'> => ({
  policySettings: async () => ({
    file: '/home/ada/projects/app/toolway.yaml',
    editable: { ok: true },
    parts: [
      ...agents.map((name) => ({
        ...{ kind: 'agent' as const, title: `Agent ${name}`, path: ['agents', name], hash: 'p1' },
        ...{ value: { allow: { servers: ['github'] } }, yaml: 'allow:\n  servers: [github]\n' },
      })),
      { kind: 'limits', title: 'Limits', path: ['limits'], value: null, yaml: '', hash: 'p2' },
    ],
    schemas: { agent, limits: { type: 'object', properties: { perMinute: { type: 'number' } } } },
  }),
  previewPolicy: async () => policyPreview,
  async *replayPolicy() {
    yield { kind: 'end', replay: policyReplay }
  },
})
