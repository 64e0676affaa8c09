import { type Signal, useSignal } from '@preact/signals'
import type { TargetedKeyboardEvent } from 'preact'
import { useId } from 'preact/hooks'
import type { ChatView } from '../../../../src/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { isAdmin, selectableAgents } from '../../api/session.ts'
import { Button } from '../../components/button.tsx'
import { Icon } from '../../components/icon.tsx'
import { SelectField } from '../../components/select-field.tsx'
import { Note } from '../../components/states.tsx'
import { useUnsaved } from '../../routing/unsaved.ts'
import { attachImage, imageTypes, maxImages } from './attach-image.ts'
import { type ChatOptions, sendMessage, stop, turns } from './conversation.ts'
import type { ToolChoice } from './tool-choice.ts'
import { ToolPicker } from './tool-picker.tsx'
import type { AttachedImage } from './turn.ts'

const modes = [
  ['', 'as configured'],
  ['staged', 'staged'],
  ['agent', 'agent'],
] as const

/** What the user can choose for the next answers. It also applies to retries and edited messages. */
export function useChatOptions({ models }: Pick<ChatView, 'models'>) {
  const known = useResource(isAdmin.value ? queries.agents : async () => [], 'agents')
  const agents = selectableAgents(known.data?.map(({ name }) => name) ?? [])
  const model = useSignal<string | undefined>(undefined)
  const mode = useSignal('')
  const agent = useSignal<string | undefined>(undefined)
  const only = useSignal<ToolChoice>(undefined)
  const options: ChatOptions = {
    model: model.value ?? models[0] ?? '',
    mode: mode.value || undefined,
    agent: agent.value ?? agents[0] ?? '',
    only: only.value,
  }
  return { options, agents, model, mode, agent, only }
}

/** Whether a key sends the message. While an input method is composing text, Enter only confirms the composition. */
export const isSendKey = ({ key, shiftKey, isComposing }: KeyboardEvent): boolean =>
  key === 'Enter' && !shiftKey && !isComposing

/** Moves the focus to the message field, when the button that had it disappears. */
export const focusMessage = (): void => document.querySelector<HTMLElement>('.composer textarea')?.focus()

interface ComposerProps extends ChatView {
  readonly chosen: ReturnType<typeof useChatOptions>
}

/** The message that is being written. */
function useDraft(options: ChatOptions, seesImages: boolean) {
  const text = useSignal('')
  const images = useSignal<readonly AttachedImage[]>([])
  const problem = useSignal('')
  const isEmpty = text.value.trim() === '' && images.value.length === 0
  useUnsaved(!isEmpty, 'Discard your message? It is not sent.')

  const send = () => {
    if (isEmpty || isAnswering()) return
    if (images.value.length > 0 && !seesImages) {
      problem.value = `${options.model} does not accept images. Remove them or choose another model.`
      return
    }
    const message = { text: text.value.trim(), images: images.value }
    text.value = ''
    images.value = []
    problem.value = ''
    void sendMessage(message, options)
  }
  const attach = async (files: readonly File[]) => {
    problem.value = ''
    for (const file of files) {
      if (images.value.length >= maxImages) {
        problem.value = `A message can have at most ${maxImages} images.`
        return
      }
      try {
        images.value = [...images.value, await attachImage(file)]
      } catch (thrown) {
        problem.value = (thrown as Error).message
      }
    }
  }
  return { text, images, problem: problem.value, isEmpty, send, attach }
}

const isAnswering = (): boolean => turns.value.at(-1)?.state === 'running'

const stopAnswer = () => {
  stop()
  focusMessage()
}

export function Composer({ models, vision, chosen }: ComposerProps) {
  const { options, agents, model, mode, agent, only } = chosen
  const sees = vision.includes(options.model)
  const { text, images, problem, isEmpty, send, attach } = useDraft(options, sees)
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLTextAreaElement>) => {
    if (!isSendKey(event)) return
    event.preventDefault()
    send()
  }
  const setterOf = (choice: Signal<string | undefined> | Signal<string>) => (next: string) => {
    choice.value = next
  }
  return (
    <div class="card composer">
      {problem !== '' && (
        <Note tone="bad">
          <p>{problem}</p>
        </Note>
      )}
      <AttachedImages images={images} />
      <textarea
        class="input"
        aria-label="Message"
        dir="auto"
        placeholder="Enter to send, Shift+Enter for a new line"
        rows={3}
        value={text.value}
        onInput={({ currentTarget }) => (text.value = currentTarget.value)}
        onKeyDown={onKeyDown}
        data-search
      />
      <div class="filters">
        <SelectField label="Model" value={options.model} options={models} onChange={setterOf(model)} />
        <SelectField label="Mode" value={mode.value} options={modes} onChange={setterOf(mode)} />
        <SelectField label="Act as agent" value={options.agent} options={agents} onChange={setterOf(agent)} />
        <ToolPicker choice={options.only} onChange={(next) => (only.value = next)} />
        {sees && <ImageField onFiles={attach} />}
        {isAnswering() ? (
          <Button icon="close" key="stop" onClick={stopAnswer}>
            Stop
          </Button>
        ) : (
          <Button kind="primary" icon="up" key="send" aria-disabled={isEmpty} onClick={send}>
            Send
          </Button>
        )}
      </div>
    </div>
  )
}

function AttachedImages({ images }: { readonly images: Signal<readonly AttachedImage[]> }) {
  if (images.value.length === 0) return null
  return (
    <ul class="row" aria-label="Attached images">
      {images.value.map((image, index) => (
        <li key={index} class="chip">
          {image.url && <img class="thumbnail" src={image.url} alt="" />}
          {image.name}
          <Button
            kind="plain icon tiny"
            icon="close"
            aria-label={`Remove ${image.name}`}
            onClick={() => (images.value = images.value.filter((one) => one !== image))}
          />
        </li>
      ))}
    </ul>
  )
}

/** A file input that looks like a button. */
function ImageField({ onFiles }: { onFiles(files: readonly File[]): void }) {
  const id = useId()
  return (
    <div class="file-field">
      <input
        id={id}
        class="hidden"
        type="file"
        accept={imageTypes.join(',')}
        multiple
        onChange={({ currentTarget }) => {
          onFiles([...(currentTarget.files ?? [])])
          currentTarget.value = ''
        }}
      />
      <label class="button" for={id}>
        <Icon name="add" size={14} /> Images
      </label>
    </div>
  )
}
