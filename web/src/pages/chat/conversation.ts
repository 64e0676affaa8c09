import { effect, signal } from '@preact/signals'
import { type ChatRequest, streamChat } from '../../api/chat.ts'
import { ApiError } from '../../api/request.ts'
import { session } from '../../api/session.ts'
import { createChatStore, type StoredChat, titleOf } from './stored-chats.ts'
import {
  type AttachedImage,
  applyEvent,
  failedTurn,
  historyOf,
  newTurn,
  stoppedTurn,
  type Turn,
  userMessage,
  withinImageLimits,
} from './turn.ts'

/** The current conversation. It is kept while the user visits other pages. */
export const turns = signal<readonly Turn[]>([])

/** The ID of the current conversation; undefined until its first message is sent. */
export const currentChat = signal<string | undefined>(undefined)

/** The conversations in this browser, the latest first. */
export const chats = signal<readonly StoredChat[]>([])

/** Whether the last attempt to save a conversation failed. */
export const storageFailed = signal(false)

let store = createChatStore(undefined, '')
let principal: string | undefined
let current: AbortController | undefined

// Conversations belong to a user: another user of this browser does not see them.
effect(() => {
  const user = typeof session.value === 'object' ? session.value.principal : undefined
  if (user === principal) return
  principal = user
  startNewChat()
  store = createChatStore(user === undefined ? undefined : browserStorage(), user ?? '')
  chats.value = store.list()
})

window.addEventListener('storage', ({ key }) => {
  if (store.owns(key)) chats.value = store.list()
})

// Leaving the page stops the answer. Without this, it would be kept as one that failed because of the network. Browsers
// may end the request before `pagehide`.
let leaving = false
window.addEventListener('beforeunload', () => {
  leaving = true
})
window.addEventListener('pagehide', () => stop())

function browserStorage(): Storage | undefined {
  try {
    return window.localStorage
  } catch {
    return undefined
  }
}

const updateLastTurn = (next: (turn: Turn) => Turn): void => {
  const last = turns.peek().at(-1)
  if (last) turns.value = [...turns.peek().slice(0, -1), next(last)]
}

function saveCurrent(): void {
  const id = currentChat.peek()
  const [first] = turns.peek()
  if (id === undefined || !first) return
  const title = chats.peek().find((chat) => chat.id === id)?.title ?? titleOf(first.question)
  storageFailed.value = !store.save({ id, title, updatedAt: Date.now(), turns: turns.peek() })
  chats.value = store.list()
}

export interface Message {
  readonly text: string
  readonly images: readonly AttachedImage[]
}

/** What the user has chosen for the next answer. */
export type ChatOptions = Omit<ChatRequest, 'messages'>

/** Sends a message. Resolves when the answer is complete, has failed or has been stopped. */
export async function sendMessage({ text, images }: Message, options: ChatOptions): Promise<void> {
  const messages = withinImageLimits([...historyOf(turns.peek()), userMessage(text, images)])
  const controller = new AbortController()
  current = controller
  leaving = false
  currentChat.value ??= crypto.randomUUID()
  turns.value = [...turns.peek(), newTurn(text, images)]
  saveCurrent()
  try {
    await streamChat({ ...options, messages }, controller.signal, (event) => {
      // After a stop, the turns may belong to another conversation.
      if (!controller.signal.aborted) updateLastTurn((turn) => applyEvent(turn, event))
    })
  } catch (thrown) {
    if (controller.signal.aborted) return
    if (leaving) return stop()
    updateLastTurn((turn) =>
      failedTurn(turn, thrown instanceof ApiError ? thrown : { code: 'FAILED', message: String(thrown) }),
    )
  }
  if (!controller.signal.aborted) saveCurrent()
}

/** Asks again from this turn on, with another message if one is given. The turns after it are removed. */
export function resend(index: number, options: ChatOptions, message?: Message): Promise<void> {
  const turn = turns.peek()[index]
  if (!turn) return Promise.resolve()
  stop()
  turns.value = turns.peek().slice(0, index)
  return sendMessage(message ?? { text: turn.question, images: turn.images }, options)
}

/** Stops the current answer, including the model and all tools that are running for it. */
export function stop(): void {
  if (turns.peek().at(-1)?.state !== 'running') return
  current?.abort()
  updateLastTurn(stoppedTurn)
  saveCurrent()
}

export function startNewChat(): void {
  stop()
  turns.value = []
  currentChat.value = undefined
}

export function openChat(id: string): void {
  const chat = chats.peek().find((one) => one.id === id)
  if (!chat || id === currentChat.peek()) return
  stop()
  turns.value = chat.turns
  currentChat.value = id
}

export function renameChat(id: string, title: string): void {
  const chat = chats.peek().find((one) => one.id === id)
  const named = title.trim().slice(0, 200)
  if (!chat || named === '') return
  storageFailed.value = !store.save({ ...chat, title: named })
  chats.value = store.list()
}

export function deleteChat(id: string): void {
  if (id === currentChat.peek()) startNewChat()
  store.remove(id)
  chats.value = store.list()
}

export function deleteAllChats(): void {
  startNewChat()
  store.clear()
  chats.value = store.list()
}
