import { useEffect } from 'preact/hooks'
import type { ChatView } from '../../../../src/serve/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { Icon } from '../../parts/icon.tsx'
import { Page } from '../../parts/page.tsx'
import { Empty, Loaded } from '../../parts/states.tsx'
import { Composer } from './composer.tsx'
import './chat.css'
import { Code } from '../../parts/code.tsx'
import { startAnew, turns } from './talk.ts'
import { TurnView } from './turn-view.tsx'

export function ChatPage() {
  const chat = useResource(queries.chat, 'chat')
  const anew = (
    <button type="button" class="button" onClick={startAnew}>
      <Icon name="add" size={14} /> New chat
    </button>
  )
  return (
    <Page
      title="Chat"
      note="Ask something that needs tools. Calls are real: the rules of the agent apply, and the audit log records them."
      actions={turns.value.length > 0 && anew}
    >
      <Loaded of={chat} what="the models">
        {({ models }: ChatView) => (models.length === 0 ? <NoModel /> : <Conversation models={models} />)}
      </Loaded>
    </Page>
  )
}

/** Follow the conversation only if the user is this close to its end, and has not scrolled up. */
const nearPx = 240

function Conversation({ models }: ChatView) {
  useEffect(() => {
    const { scrollHeight, scrollTop, clientHeight } = document.documentElement
    if (turns.value.length > 0 && scrollHeight - scrollTop - clientHeight < nearPx) window.scrollTo(0, scrollHeight)
  }, [turns.value])
  return (
    <div class="stack">
      {turns.value.length > 0 && (
        <ol class="stack turns" aria-label="Conversation">
          {turns.value.map((turn, index) => (
            <TurnView key={index} turn={turn} />
          ))}
        </ol>
      )}
      <Composer models={models} />
    </div>
  )
}

const example = `models:
  local:
    kind: openai
    baseUrl: http://127.0.0.1:8000/v1
    model: qwen3
chat:
  model: local`

function NoModel() {
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
