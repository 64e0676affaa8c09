import { Code } from '../../parts/code.tsx'
import { Empty } from '../../parts/states.tsx'

const example = `models:
  local:
    kind: openai
    baseUrl: http://127.0.0.1:8000/v1
    model: qwen3
chat:
  model: local`

/** What to do before there is anybody to talk to. */
export function NoModel() {
  return (
    <div class="card">
      <Empty title="No model is configured">
        <p>
          A chat needs a language model. Any server that speaks the interface of OpenAI will do: add it to the
          configuration, and name it in <code>chat.model</code>.
        </p>
        <Code text={example} label="Configuration with a model" />
      </Empty>
    </div>
  )
}
