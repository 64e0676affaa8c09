import { Code } from '../../parts/code.tsx'
import { Empty } from '../../parts/states.tsx'

const example = `models:
  local:
    kind: openai
    baseUrl: http://127.0.0.1:8000/v1
    model: qwen3
chat:
  model: local`

export function NoModel() {
  return (
    <div class="card">
      <Empty title="No model is configured">
        <p>
          Chat needs a language model. Any server with an OpenAI-compatible API works: add it under <code>models</code>{' '}
          and set <code>chat.model</code> to its name.
        </p>
        <Code text={example} label="Example configuration with a model" />
      </Empty>
    </div>
  )
}
