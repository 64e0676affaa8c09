import { any, pattern, type Rule } from './rule.ts'
import { put, talk, talkWords } from './words.ts'

const models = any(
  'ai, llms?, language models?, models?, assistants?, agents?, ai agents?, claude, gpt, chatgpt, copilot, gemini',
)
const tag = any(
  'system, sys, secret, hidden, override, admin, jailbreak, private, confidential, developer',
  'system[-_ ]?(?:prompt|message|instructions?|override|reminder), hidden[-_ ]?\\w{0,20}, secret[-_ ]?\\w{0,20}',
  'assistant[-_ ]?instructions?, ai[-_ ]?(?:instructions?|only)',
)

/** Marks that claim to end the description and to begin something with more authority. */
export const structureRules: readonly Rule[] = [
  {
    kind: 'instruction',
    needs: ['<', '['],
    pattern: pattern`</?(?:${tag}|important|critical|urgent|mandatory|directive)>|\[system:|<\| ?(?:NAME )?(?:im_start|im_end|system|user|assistant|endoftext|start_header_id|eot_id) ?\|?>|\[/?(?:inst|system|sys|admin|override)\]|<</?sys>>|</(?:description|tool|tools|function|functions|tool_description)>`,
  },
  {
    kind: 'instruction',
    needs: ['<'],
    pattern: pattern`</?(?:priority|instructions?|notice|note|warning|attention|rules?)>`,
    near: pattern`\b(?:exfiltrat\w*|otherwise|do not (?:tell|mention)|FILE|first call NAME|conversation|credentials?)\b|\bbefore (?:you|using|calling)\b.{0,60}\b(?:read|open|pass)\b`,
  },
  {
    kind: 'instruction',
    needs: ['<'],
    pattern: pattern`<!--.{0,300}\b(?:${models}|you|ignore|send|fetch|read|call|attach|must)\b`,
  },
  {
    kind: 'instruction',
    needs: ['system', '#', '`', 'instructions'],
    pattern: pattern`\bsystem (?:override|directive)\b|-{2,} ?(?:new|system|hidden) instructions\b|\bsystem: (?:the|you|assistant|all|ignore|from|always|new|this|run|execute|print|obey|act|output|reveal)\b|^new instructions:|^#{1,3} ?(?:system|instruction):|${'```'}system\b`,
  },
  {
    kind: 'instruction',
    needs: ['human', 'user'],
    pattern: /^(?:human|user): /u,
    near: /(?:^|\| )assistant: /u,
  },
  {
    kind: 'instruction',
    needs: ['role'],
    pattern: pattern`\bNAME role\b[ :]{0,4}NAME (?:system|developer)\b.{0,80}\b(?:always|ignore|must|never|you will|forward|add|send)\b`,
  },
  {
    kind: 'instruction',
    needs: models.words,
    pattern: pattern`\b(?:note|message|instructions?|attention|hint|notice|reminder) (?:to|for) (?:the |all )?(?:automated )?${models}\b.{0,120}\b(?:${put}|cat|read|execute|ignore|silently|never|also call)\b`,
    near: pattern`\b(?:FILE|${talk}|credentials?|passwords?|secrets)\b`,
    unless: /\bif the user\b|\bonly (?:use|call)\b|\bwhen the user\b|\bdo not (?:include|pass|send)\b/u,
  },
  {
    kind: 'instruction',
    needs: ['even', 'unrelated', 'whatsoever', 'related'],
    and: ['every', 'each', 'any', 'all'],
    pattern: pattern`\b(?:every|each|any|all)\b (?:\w+ ){0,2}(?:messages?|requests?|turns?|questions?|responses?|answers?|conversations?|inputs?)\b.{0,40}\b(?:even if (?:it is |they are )?unrelated|related or not|unrelated|whatsoever)\b`,
  },
  {
    kind: 'instruction',
    needs: talkWords,
    and: ['before', 'prior', 'ahead', 'after', 'each', 'every', 'any'],
    pattern: pattern`\b(?:before|prior to|ahead of|after)\b.{0,16}\b(?:any|every|each|all|answering|other)\b.{0,16}\b(?:tools?|answers?|anything|responses?|requests?|turns?|repl(?:y|ies)|messages?)\b.{0,120}\b(?:${put}|with|handing)\b.{0,40}\b(?:full|whole|entire|complete|all|every)\b.{0,20}\b${talk}\b|\b${put}\b.{0,30}\b(?:full|whole|entire|complete|all)\b.{0,20}\b${talk}\b.{0,60}\b(?:each|every|before|after|any)\b`,
  },
  {
    kind: 'instruction',
    needs: ['prehook', 'pre', 'posthook', 'post', 'hook', 'init', 'precondition', 'preconditions', 'step'],
    pattern: pattern`\b(?:pre_?hook|post_?hook|__init__|preconditions?)\b.{0,80}(?:\bFILE\b|\bread ?\(|\bNAME read_file|\bhttp_?post|\bexec ?\()|\bstep 1\b.{0,40}\b(?:run|read|cat|open)\b.{0,40}(?:\bFILE\b|\benv\b)`,
  },
]
