// Makes the signatures of the reference readable. Signatures have type machinery, by which
// TypeScript infers results and refuses wrong operands. The page of a call shows only what a caller
// passes and gets, and which errors the call throws. The pages of types show types as they are.
import {
  ArrayType,
  Converter,
  IntersectionType,
  ReferenceType,
  ReflectionKind,
  ReflectionType,
  TupleType,
  UnionType,
} from 'typedoc';

const machinery = 'Type machinery';

/** Runs this before TypeDoc groups members, and before it checks links and references. */
const early = 1000;

export function load(app) {
  app.internationalization.addTranslations('en', { kind_call_signature: 'Overload' });
  app.converter.on(
    Converter.EVENT_RESOLVE_END,
    ({ project }) => {
      const errors = errorsOf(project);
      for (const reflection of Object.values(project.reflections)) {
        nameSymbols(reflection);
        hideUnexported(reflection);
        linkErrors(reflection, errors);
        if (reflection.type) reflection.type = changed(reflection.type, withoutDefaults);
      }
      for (const signature of project.getReflectionsByKind(ReflectionKind.SomeSignature))
        simplify(signature, project);
      for (const { signatures } of project.getReflectionsByKind(ReflectionKind.FunctionOrMethod))
        signatures?.sort(byOptions);
    },
    early,
  );
}

/** TypeDoc calls the method of `Symbol.dispose` [dispose]. Users write [Symbol.dispose]. */
function nameSymbols(reflection) {
  reflection.name = reflection.name.replace(/^\[(?=\w+\]$)/, '[Symbol.');
}

/** Instances inherit from an interface that no user can name. */
function hideUnexported(reflection) {
  const isExported = (type) => type.reflection || type.package !== 'wgemm';
  const { inheritedFrom, extendedTypes } = reflection;
  if (inheritedFrom && !isExported(inheritedFrom)) delete reflection.inheritedFrom;
  if (extendedTypes?.every(isExported) === false) delete reflection.extendedTypes;
}

function errorsOf(project) {
  const classes = project.getReflectionsByKind(ReflectionKind.Class);
  return new Map(classes.filter(({ name }) => name.endsWith('Error')).map((x) => [x.name, x]));
}

/** Links the classes that `@throws` names. */
function linkErrors({ comment }, errors) {
  for (const tag of comment?.getTags('@throws') ?? []) {
    tag.content = tag.content.flatMap((part) =>
      part.kind !== 'text'
        ? [part]
        : part.text.split(/\b(\w+Error)\b/).map((text) => {
            const target = errors.get(text);
            return target
              ? { kind: 'inline-tag', tag: '@link', text, target }
              : { kind: 'text', text };
          }),
    );
  }
}

/** Puts the overloads that need no options first, since most readers look for these. */
function byOptions(a, b) {
  const needs = ({ parameters }) => (parameters?.at(-1)?.flags.isOptional ? 0 : 1);
  return needs(a) - needs(b);
}

/** Changes the parts of a type, and then the type. */
function changed(type, change) {
  const inside = (part) => changed(part, change);
  if (type instanceof UnionType) return change(new UnionType(type.types.map(inside)));
  if (type instanceof IntersectionType) return change(new IntersectionType(type.types.map(inside)));
  if (type instanceof ArrayType) return change(new ArrayType(inside(type.elementType)));
  if (type instanceof ReferenceType) type.typeArguments &&= type.typeArguments.map(inside);
  return change(type);
}

/** Omits type arguments that are the default, and all type arguments of typed arrays. */
function withoutDefaults(type) {
  if (!(type instanceof ReferenceType) || !type.typeArguments) return type;
  const isTypedArray = /^\w+Array$/.test(type.name) && type.package === 'typescript';
  const args = isTypedArray ? [] : type.typeArguments;
  const parameters = type.reflection?.typeParameters ?? [];
  while (args.length > 0 && isDefault(parameters, args)) args.pop();
  type.typeArguments = args.length > 0 ? args : undefined;
  return type;
}

/** Whether the last of these arguments is the default. */
function isDefault(parameters, args) {
  const text = parameters[args.length - 1]?.default?.toString();
  const expected = text?.replace(/\b[A-Z]\b/g, (name) => {
    const at = parameters.findIndex((parameter) => parameter.name === name);
    return at < 0 ? name : `${args[at]}`;
  });
  return expected !== undefined && wordsOf(expected) === wordsOf(`${args.at(-1)}`);
}

/** The names in a type, sorted, since the members of a union have no order. */
const wordsOf = (type) => type.match(/\w+/g)?.sort().join(' ');

/** Omits what only helps TypeScript. */
function simplify(signature, project) {
  const shown = signature.typeParameters?.filter((parameter) => parameter.hasComment()) ?? [];
  const hidden = signature.typeParameters?.filter((parameter) => !shown.includes(parameter)) ?? [];
  const shownNames = new Set(shown.map(({ name }) => name));
  const hiddenNames = new Set(hidden.map(({ name }) => name));
  const isNothing = ({ type }) => type instanceof TupleType && type.elements.length === 0;
  signature.parameters = signature.parameters?.filter((parameter) => !isNothing(parameter));
  for (const part of [signature, ...shown, ...(signature.parameters ?? [])])
    part.type &&= changed(part.type, (type) => withoutMachinery(type, shownNames, hiddenNames));
  for (const parameter of hidden) project.removeReflection(parameter);
  signature.typeParameters = shown.length > 0 ? shown : undefined;
}

function withoutMachinery(type, shown, hidden) {
  if (type instanceof IntersectionType) {
    const types = type.types.filter((part) => !isMachinery(part));
    const named = types.flatMap((part) => part.reflection?.children ?? []);
    const kept = types.filter((part) => !narrows(part, named, shown));
    return kept.length === 1 ? kept[0] : new IntersectionType(kept);
  }
  if (!(type instanceof ReferenceType) || !type.typeArguments) return type;
  if (type.name === 'Omit') return type.typeArguments[0]; // options of an operation, without `out`
  if (type.name === 'OutOr') return type.typeArguments[0];
  const args = type.typeArguments.filter(({ name }) => !hidden.has(name));
  type.typeArguments = args.length > 0 ? args : undefined;
  return type;
}

function isMachinery({ reflection }) {
  const category = reflection?.comment?.getTag('@category')?.content[0]?.text.trim();
  return category === machinery;
}

/**
 * Whether an object type only says more about properties of a named one. A property stays if its
 * type is a parameter that the signature shows, as in `{ out: O }`.
 */
function narrows(type, named, shown) {
  if (!(type instanceof ReflectionType) || named.length === 0) return false;
  const { declaration } = type;
  const isKnown = ({ name }) => named.some((property) => property.name === name);
  if (!declaration.children?.every(isKnown)) return false;
  declaration.children = declaration.children.filter((child) => shown.has(child.type?.name));
  return declaration.children.length === 0;
}
