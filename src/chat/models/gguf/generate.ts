import type { HistoryItem, SamplingOptions, TokenId } from './llama-library.ts'
import type { LoadedModel } from './load-model.ts'

export interface GenerateRequest {
  readonly history: readonly HistoryItem[]
  /** Constrains the answer, if given. */
  readonly gbnf: string | undefined
  readonly sampling: SamplingOptions
  readonly maxTokens: number | undefined
  readonly signal: AbortSignal
  emit(kind: 'text' | 'thinking', text: string): void
  tooLong(tokens: number): Error
}

export interface GenerateResult {
  readonly isCut: boolean
  readonly promptTokens: number
  readonly completionTokens: number
}

/** Minimum room for the answer, in tokens. */
const leastRoom = 64
/** Evaluate the prompt in slices, so that it can be cancelled in between. */
const slice = 128

export async function generate(loaded: LoadedModel, request: GenerateRequest): Promise<GenerateResult> {
  const { sequence, context } = loaded
  const { signal } = request
  const prompt = promptFor(loaded, request)
  const room = context - prompt.length
  if (room < leastRoom) throw request.tooLong(prompt.length)
  const maxTokens = Math.min(request.maxTokens ?? room, room - 1)
  // The last token is evaluated together with the answer.
  await sequence.adaptStateToTokens(prompt.slice(0, -1), false)
  for (let at = sequence.nextTokenIndex; prompt.length - at > slice; at += slice) {
    signal.throwIfAborted()
    await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(at, at + slice))
  }
  signal.throwIfAborted()
  const { completionTokens, isCut } = await (request.gbnf === undefined
    ? generateFreely(loaded, request, maxTokens)
    : generateConstrained(loaded, request, request.gbnf, prompt.slice(sequence.nextTokenIndex), maxTokens))
  return { isCut, promptTokens: prompt.length, completionTokens }
}

type Written = Omit<GenerateResult, 'promptTokens'>

function promptFor({ wrapper, model }: LoadedModel, { history, gbnf }: GenerateRequest): readonly TokenId[] {
  const { contextText, prefixTriggers, noPrefixTrigger } = wrapper.generateContextState({ chatHistory: history })
  const tokens = contextText.tokenize(model.tokenizer)
  if (gbnf === undefined) return tokens
  // Some models announce the kind of answer first; under a grammar they cannot, so write it for them.
  const opening = prefixTriggers?.find(({ type }) => type === 'response')
  const generated =
    noPrefixTrigger?.type === 'response' ? [noPrefixTrigger.inject] : [opening?.triggers[0], opening?.inject]
  return [...tokens, ...generated.flatMap((text) => text?.tokenize(model.tokenizer) ?? [])]
}

/** With a grammar, the answer ends where the grammar does. */
async function generateConstrained(
  { library, llama, model, sequence }: LoadedModel,
  { sampling, signal, emit }: GenerateRequest,
  gbnf: string,
  prompt: readonly TokenId[],
  maxTokens: number,
): Promise<Written> {
  const grammar = await llama.createGrammar({ grammar: gbnf })
  const grammarEvaluationState = new library.LlamaGrammarEvaluationState({ model, grammar })
  const generated: TokenId[] = []
  let emitted = 0
  for await (const token of sequence.evaluate(prompt, { ...sampling, grammarEvaluationState })) {
    signal.throwIfAborted()
    generated.push(token)
    // The grammar treats special tokens as their text.
    const text = model.detokenize(generated.slice(emitted), true, generated.slice(Math.max(0, emitted - 8), emitted))
    // A character may span several tokens.
    if (!text.endsWith('\ufffd')) {
      emit('text', text)
      emitted = generated.length
    }
    if (generated.length >= maxTokens) return { isCut: true, completionTokens: generated.length }
  }
  return { isCut: false, completionTokens: generated.length }
}

/** Without a grammar, the library detects the end of the answer and the thinking. */
async function generateFreely(
  { library, sequence, wrapper }: LoadedModel,
  { history, sampling, signal, emit }: GenerateRequest,
  maxTokens: number,
): Promise<Written> {
  const chat = new library.LlamaChat({ contextSequence: sequence, chatWrapper: wrapper })
  const before = sequence.tokenMeter.usedOutputTokens
  try {
    const { metadata } = await chat.generateResponse(history, {
      ...sampling,
      maxTokens,
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
