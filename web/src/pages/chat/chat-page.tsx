import { useEffect } from 'preact/hooks'
import type { ChatView } from '../../../../src/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { Button } from '../../components/button.tsx'
import { Page } from '../../components/page.tsx'
import { EmptyState, Loaded } from '../../components/states.tsx'
import { Composer, focusMessage, useChatOptions } from './composer.tsx'
import './chat.css'
import { CodeBlock } from '../../components/code-block.tsx'
import { type Message, resend, startNewChat, turns } from './conversation.ts'
import { ConversationList } from './conversation-list.tsx'
import { TurnView } from './turn-view.tsx'

export function ChatPage() {
  const chat = useResource(queries.chat, 'chat')
  const newChatButton = (
    <Button icon="add" onClick={startNewChat}>
      New chat
    </Button>
  )
  return (
    <Page
      title="Chat"
      note="Ask something that needs tools. Calls are real: the agent's rules apply, and the audit log records the calls."
      actions={turns.value.length > 0 && newChatButton}
    >
      <Loaded resource={chat} what="the models">
        {(view: ChatView) => (view.models.length === 0 ? <NoModel /> : <Conversation {...view} />)}
      </Loaded>
    </Page>
  )
}

/**
 * Max distance from the end of the conversation, in pixels, at which the page follows new text. If the user has
 * scrolled further up, the page does not scroll.
 */
const followWithinPx = 240

function Conversation({ models, vision }: ChatView) {
  const chosen = useChatOptions({ models })
  const again = (index: number, message?: Message) => {
    void resend(index, chosen.options, message)
    focusMessage()
  }
  useEffect(() => {
    const { scrollHeight, scrollTop, clientHeight } = document.documentElement
    if (turns.value.length > 0 && scrollHeight - scrollTop - clientHeight < followWithinPx)
      window.scrollTo(0, scrollHeight)
  }, [turns.value])
  return (
    <div class="stack">
      <ConversationList />
      {turns.value.length > 0 && (
        <ol class="stack turns" aria-label="Conversation">
          {turns.value.map((turn, index) => (
            <TurnView
              key={index}
              turn={turn}
              retry={() => again(index)}
              edit={(text) => again(index, { text, images: turn.images })}
            />
          ))}
        </ol>
      )}
      <Composer models={models} vision={vision} chosen={chosen} />
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
      <EmptyState title="No model is configured">
        <p>
          Chat needs a language model. Any server with an OpenAI-compatible API works: add it under <code>models</code>{' '}
          and set <code>chat.model</code> to its name.
        </p>
        <CodeBlock text={example} label="Example configuration with a model" />
      </EmptyState>
    </div>
  )
}
