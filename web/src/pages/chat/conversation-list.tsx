import { useSignal } from '@preact/signals'
import { ActionButton } from '../../components/action-button.tsx'
import { Button } from '../../components/button.tsx'
import { Note } from '../../components/states.tsx'
import { RelativeTime } from '../../components/times.tsx'
import { chats, currentChat, deleteAllChats, deleteChat, openChat, renameChat, storageFailed } from './conversation.ts'
import { maxChats, type StoredChat } from './stored-chats.ts'

/** The conversations in this browser: open, rename, delete. */
export function ConversationList() {
  if (chats.value.length === 0 && !storageFailed.value) return null
  return (
    <details class="card conversations">
      <summary>
        Conversations <span class="quiet">({chats.value.length})</span>
      </summary>
      <div class="stack tight">
        <p class="quiet small">
          Kept in this browser only, without images: the latest {maxChats}, up to 2 MB. Toolway does not store them.
        </p>
        {storageFailed.value && (
          <Note tone="warn">
            <p>The current conversation is not saved: the browser's storage is full or not available.</p>
          </Note>
        )}
        <ul class="stack tight" aria-label="Conversations">
          {chats.value.map((chat) => (
            <ConversationItem key={chat.id} chat={chat} />
          ))}
        </ul>
        <div>
          <ActionButton
            name="Delete all"
            kind="danger"
            everyone
            confirm={{ title: 'Delete all conversations?', text: 'They cannot be restored. Audit records stay.' }}
            run={async () => deleteAllChats()}
          />
        </div>
      </div>
    </details>
  )
}

function ConversationItem({ chat: { id, title, updatedAt } }: { readonly chat: StoredChat }) {
  const draft = useSignal<string | undefined>(undefined)
  const rename = () => {
    if (draft.value !== undefined) renameChat(id, draft.value)
    draft.value = undefined
  }
  if (draft.value !== undefined) {
    return (
      <li>
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault()
            rename()
          }}
        >
          <input
            class="input"
            aria-label="Name of the conversation"
            value={draft.value}
            maxLength={200}
            ref={(element) => element?.focus()}
            onInput={({ currentTarget }) => (draft.value = currentTarget.value)}
            onKeyDown={({ key }) => {
              if (key === 'Escape') draft.value = undefined
            }}
          />
          <Button kind="tiny" type="submit">
            Save
          </Button>
        </form>
      </li>
    )
  }
  return (
    <li class="row">
      <Button
        kind="plain conversation"
        aria-current={currentChat.value === id ? 'true' : undefined}
        onClick={() => openChat(id)}
      >
        {title}
      </Button>
      <span class="quiet small">
        <RelativeTime at={updatedAt} />
      </span>
      <Button
        kind="plain icon tiny"
        icon="write"
        aria-label={`Rename ${title}`}
        onClick={() => (draft.value = title)}
      />
      <Button kind="plain icon tiny" icon="close" aria-label={`Delete ${title}`} onClick={() => deleteChat(id)} />
    </li>
  )
}
