import type { Call } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import type { Entry } from '../../core/entry.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { type Result, resultOf } from '../../core/result.ts'
import { hasListedContent, skillFiles } from '../../core/skills.ts'
import { type Source, skillsSource } from '../../core/source.ts'
import type { SourceStatus } from '../../core/source-status.ts'
import { createListeners } from '../../lib/listen.ts'
import { pluralize, quote } from '../../lib/message-text.ts'
import { type LocalSkill, readInside, readSkills } from './read-skills.ts'

/** Watches files until it is disposed of. `follow` replaces their list. */
interface WatchedFiles extends Disposable {
  follow(files: readonly string[]): void
  reading(): void
}

export interface LocalSkillsOptions {
  readonly folders: readonly string[]
  watch(files: readonly string[], changed: () => void): WatchedFiles
  /** Converts URIs in the result of a call to those that its caller uses. */
  servedUris(call: Call): (uri: string) => string
  readonly clock: Clock
  readonly log: Log
}

const readTraits = { readOnly: true, idempotent: true, timeoutMs: 30_000 }

/** The skills in the configured folders. They are read again when a file changes. */
export class LocalSkills implements Source {
  readonly name = skillsSource
  readonly origin = 'native'
  readonly priority = Number.MAX_SAFE_INTEGER
  readonly #options: LocalSkillsOptions
  readonly #changes = createListeners<[]>()
  readonly #since: number
  #entries: readonly Entry[] = []
  #known = ''
  #problems: readonly string[] = []
  #reading: Promise<void> | undefined
  #isRead = false
  #files: WatchedFiles | undefined
  #isOver = false

  constructor(options: LocalSkillsOptions) {
    this.#options = options
    this.#since = options.clock.now()
  }

  entries(): readonly Entry[] {
    return this.#entries
  }

  status(): SourceStatus {
    const failed = this.#problems.length
    const health = failed > 0 ? 'degraded' : 'healthy'
    const reason = failed > 0 ? `${pluralize(failed, 'folder')} cannot be served as a skill; the log says why` : ''
    const description = 'Skills in the folders of this gateway'
    return { health, reason, since: this.#since, description, transport: 'in-process', breaker: 'closed' }
  }

  async ready(): Promise<void> {
    if (!this.#isRead) await this.refresh()
  }

  /** Reads the folders again. A change while they are read makes them be read once more. */
  refresh(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  readonly onChange = (listener: () => void): Disposable => this.#changes.on(listener)

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true
    this.#files?.[Symbol.dispose]()
    await this.#reading
  }

  async #read(): Promise<void> {
    const { folders, watch, log } = this.#options
    this.#files?.reading()
    const { skills, problems, filesToWatch } = await readSkills(folders)
    this.#isRead = true
    if (this.#isOver) return
    for (const problem of problems)
      if (!this.#problems.includes(problem)) log.warn({ reason: problem }, 'a skill is not served')
    this.#problems = problems
    if (this.#files) this.#files.follow(filesToWatch)
    else this.#files = watch(filesToWatch, () => void this.refresh())
    const known = JSON.stringify([skills.map(({ definition }) => definition), problems])
    if (known === this.#known) return
    this.#known = known
    this.#entries = skills.map((skill) => this.#entryOf(skill))
    this.#changes.emit()
  }

  #entryOf(skill: LocalSkill): Entry {
    const { definition, text } = skill
    return {
      kind: 'skill',
      server: this.name,
      name: definition.uri as string,
      definition,
      verbatim: { ...definition, text },
      traits: readTraits,
      run: (call) => this.#readFile(skill, call),
    }
  }

  async #readFile({ definition, paths, folder }: LocalSkill, call: Call): Promise<Result> {
    const { uri = call.entry.name } = call.input
    const path = paths.get(uri)
    const file = skillFiles(definition)?.find((one) => one.uri === uri)
    const bytes = path === undefined ? undefined : await readInside(folder, path).catch(() => undefined)
    if (bytes && file) {
      const body = { contents: [{ uri: this.#options.servedUris(call)(uri), ...fileContent(uri, bytes) }] }
      if (hasListedContent(file, body)) return resultOf(body)
    }
    void this.refresh()
    const sentence = `The file ${quote(uri)} of a skill has changed or is gone. The skill is listed again; read the skill again.`
    throw new ToolwayError('SERVER_UNAVAILABLE', sentence, { server: this.name })
  }
}

/** A file as text if that gives exactly its bytes, otherwise as a blob. */
function fileContent(uri: string, bytes: Buffer): Readonly<Record<string, string>> {
  const text = bytes.toString('utf8')
  if (!Buffer.from(text).equals(bytes)) return { mimeType: 'application/octet-stream', blob: bytes.toString('base64') }
  return { mimeType: /\.md$/i.test(uri) ? 'text/markdown' : 'text/plain', text }
}
