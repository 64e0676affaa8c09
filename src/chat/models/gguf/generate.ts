import type { HistoryItem, SamplingOptions, TokenId } from './llama-library.ts'
import type { LoadedModel } from './load-model.ts'

/** What is asked of a model that is in memory. */
export interface GenerateRequest {
  readonly history: readonly HistoryItem[]
  /** What the answer is held to; anything goes without one. */
  readonly gbnf: string | undefined
  readonly sampling: SamplingOptions
  readonly maxTokens: number | undefined
  readonly signal: AbortSignal
  emit(kind: 'text' | 'thinking', text: string): void
  tooLong(tokens: number): Error
}

/** How an answer ended. */
export interface GenerateResult {
  /** Whether it was cut off. */
  readonly isCut: boolean
  readonly promptTokens: number
  readonly completionTokens: number
}

/** An answer needs some room. */
const leastRoom = 64
/** A prompt is read in pieces: between two of them, reading can be stopped. */
const slice = 128

/** Lets a model answer, token by token. */
export async function generate(weights: LoadedModel, request: GenerateRequest): Promise<GenerateResult> {
  const { sequence, context } = weights
  const { signal } = request
  const prompt = promptFor(weights, request)
  const room = context - prompt.length
  if (room < leastRoom) throw request.tooLong(prompt.length)
  const most = Math.min(request.maxTokens ?? room, room - 1)
  // The last token is left to whoever wants to know what comes after it.
  await sequence.adaptStateToTokens(prompt.slice(0, -1), false)
  for (let at = sequence.nextTokenIndex; prompt.length - at > slice; at += slice) {
    signal.throwIfAborted()
    await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(at, at + slice))
  }
  signal.throwIfAborted()
  const { completionTokens, isCut } = await (request.gbnf === undefined
    ? freely(weights, request, most)
    : within(weights, request, request.gbnf, prompt.slice(sequence.nextTokenIndex), most))
  return { isCut, promptTokens: prompt.length, completionTokens }
}

type Written = Omit<GenerateResult, 'promptTokens'>

function promptFor({ wrapper, model }: LoadedModel, { history, gbnf }: GenerateRequest): readonly TokenId[] {
  const { contextText, prefixTriggers, noPrefixTrigger } = wrapper.generateContextState({ chatHistory: history })
  const tokens = contextText.tokenize(model.tokenizer)
  if (gbnf === undefined) return tokens
  // Some models first say what kind of answer follows; under a grammar they cannot, so it is said for them.
  const opening = prefixTriggers?.find(({ type }) => type === 'response')
  const said = noPrefixTrigger?.type === 'response' ? [noPrefixTrigger.inject] : [opening?.triggers[0], opening?.inject]
  return [...tokens, ...said.flatMap((text) => text?.tokenize(model.tokenizer) ?? [])]
}

/** Under a grammar an answer ends where the grammar does: no word in the middle of it means its end. */
async function within(
  { library, llama, model, sequence }: LoadedModel,
  { sampling, signal, emit }: GenerateRequest,
  gbnf: string,
  prompt: readonly TokenId[],
  most: number,
): Promise<Written> {
  const grammar = await llama.createGrammar({ grammar: gbnf })
  const grammarEvaluationState = new library.LlamaGrammarEvaluationState({ model, grammar })
  const said: TokenId[] = []
  let told = 0
  for await (const token of sequence.evaluate(prompt, { ...sampling, grammarEvaluationState })) {
    signal.throwIfAborted()
    said.push(token)
    // The grammar has read special tokens as the text that they stand for, so they count as text.
    const text = model.detokenize(said.slice(told), true, said.slice(Math.max(0, told - 8), told))
    // A character may be made of several tokens.
    if (!text.endsWith('\ufffd')) {
      emit('text', text)
      told = said.length
    }
    if (said.length >= most) return { isCut: true, completionTokens: said.length }
  }
  return { isCut: false, completionTokens: said.length }
}

/** Without one, the library knows best where a model's answer ends and which part of it is thinking. */
async function freely(
  { library, sequence, wrapper }: LoadedModel,
  { history, sampling, signal, emit }: GenerateRequest,
  most: number,
): Promise<Written> {
  const chat = new library.LlamaChat({ contextSequence: sequence, chatWrapper: wrapper })
  const before = sequence.tokenMeter.usedOutputTokens
  try {
    const { metadata } = await chat.generateResponse(history, {
      ...sampling,
      maxTokens: most,
      signal,
      contextShift: { size: 1 },
      onResponseChunk: ({ segmentType, text }) => emit(segmentType === undefined ? 'text' : 'thinking', text),
    })
    return {
      isCut: metadata.stopReason === 'maxTokens',
      completionTokens: sequence.tokenMeter.usedOutputTokens - before,
    }
  } finally {
    chat.dispose({ disposeSequence: false })
  }
}
