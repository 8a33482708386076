/** The pad: a mouse, a finger, a pen or the keyboard draws on it. */
import { side } from '../../../digits/images.mjs';
import { imageOf, penWidth, type Point, type Stroke } from './digit-image.ts';

export interface Pad {
  /** What the network sees of it; undefined if the pad is empty. */
  image(): Float32Array | undefined;
  clear(): void;
  /** Shows a digit of the data set. The next stroke clears it. */
  show(digit: Float32Array): void;
  redraw(): void;
}

export interface PadListener {
  /** At most once per frame, after the pad has changed. */
  onChange(): void;
  /** The visitor has begun to draw on the empty pad, or has cleared it. */
  onOwn(): void;
  /** Where the keyboard's pen is, in words. */
  onPen(words: string): void;
}

const perUnit = 20; // pixels of the canvas per pixel of the data set
const moves: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};
const [step, largeStep] = [1, 4];
const nearest = 0.15; // points closer to the one before make no difference

export function makePad(canvas: HTMLCanvasElement, listener: PadListener): Pad {
  canvas.width = canvas.height = side * perUnit;
  const context = canvas.getContext('2d')!;
  let strokes: Stroke[] = [];
  let digit: Float32Array | undefined;
  let drawing: number | undefined; // the pointer that draws
  const pen = { x: side / 2, y: side / 2, isDown: false, isShown: false };
  let isScheduled = false;

  const changed = (): void => {
    if (isScheduled) return;
    isScheduled = true;
    requestAnimationFrame(() => {
      isScheduled = false;
      redraw();
      listener.onChange();
    });
  };

  // --- what is drawn ---

  const clear = (): void => {
    strokes = [];
    digit = undefined;
    pen.isDown = false;
    changed();
  };
  const begin = (point: Point): void => {
    if (strokes.length === 0) listener.onOwn();
    digit = undefined;
    strokes.push([point]);
    changed();
  };
  const extend = (point: Point): void => {
    const stroke = strokes.at(-1);
    const last = stroke?.at(-1);
    if (!stroke || !last) return;
    if (Math.hypot(point.x - last.x, point.y - last.y) < nearest) return;
    stroke.push(point);
    changed();
  };

  // --- mouse, touch, pen ---

  const pointOf = ({ clientX, clientY }: PointerEvent): Point => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const inside = (value: number) => Math.min(Math.max(0, value * side), side);
    return { x: inside((clientX - left) / width), y: inside((clientY - top) / height) };
  };
  canvas.addEventListener('pointerdown', (event) => {
    if (drawing !== undefined || event.button !== 0) return;
    drawing = event.pointerId;
    pen.isDown = pen.isShown = false;
    try {
      canvas.setPointerCapture(event.pointerId);
    } catch {
      drawing = undefined; // the pointer has gone already
    }
    begin(pointOf(event));
  });
  canvas.addEventListener('pointermove', (event) => {
    if (event.pointerId !== drawing) return;
    // A frame has one event, but fast hands make several moves in it.
    const all = event.getCoalescedEvents?.() ?? [];
    for (const each of all.length > 0 ? all : [event]) extend(pointOf(each));
  });
  const end = (event: PointerEvent): void => {
    if (event.pointerId === drawing) drawing = undefined;
  };
  for (const type of ['pointerup', 'pointercancel', 'lostpointercapture'] as const)
    canvas.addEventListener(type, end);

  // --- the keyboard ---

  const sayPen = (): void =>
    listener.onPen(
      `Pen ${pen.isDown ? 'down' : 'up'}, column ${pen.x} and row ${pen.y} of ${side}.`,
    );
  canvas.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const move = moves[event.key];
    if (move) {
      const by = event.shiftKey ? largeStep : step;
      const inside = (value: number) => Math.min(Math.max(1, value), side - 1);
      pen.x = inside(pen.x + by * move[0]);
      pen.y = inside(pen.y + by * move[1]);
      if (pen.isDown) extend({ x: pen.x, y: pen.y });
    } else if (event.key === ' ') {
      if (!event.repeat) pen.isDown = !pen.isDown;
      if (pen.isDown && !event.repeat) begin({ x: pen.x, y: pen.y });
    } else if (event.key === 'Backspace' || event.key === 'Delete') {
      clear();
      listener.onOwn();
    } else return;
    event.preventDefault(); // the page does not scroll
    pen.isShown = true;
    sayPen();
    redraw();
  });
  canvas.addEventListener('focus', () => {
    pen.isShown = canvas.matches(':focus-visible');
    redraw();
  });
  canvas.addEventListener('blur', () => {
    pen.isShown = pen.isDown = false;
    redraw();
  });

  // --- the canvas ---

  const redraw = (): void => {
    const { color } = getComputedStyle(canvas);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.save();
    context.scale(perUnit, perUnit);
    context.strokeStyle = context.fillStyle = color;
    context.lineCap = context.lineJoin = 'round';
    context.lineWidth = penWidth;
    if (digit) drawImage(context, digit, color);
    for (const stroke of strokes) {
      context.beginPath();
      context.moveTo(stroke[0]!.x, stroke[0]!.y);
      for (const { x, y } of stroke) context.lineTo(x, y); // the first makes a dot of one point
      context.stroke();
    }
    if (pen.isShown) drawPen();
    context.restore();
  };
  const drawPen = (): void => {
    const accent = getComputedStyle(canvas).getPropertyValue('--accent');
    context.strokeStyle = context.fillStyle = accent;
    context.lineWidth = 0.2;
    context.beginPath();
    context.arc(pen.x, pen.y, penWidth / 2, 0, 2 * Math.PI);
    if (pen.isDown) context.fill();
    context.stroke();
    context.beginPath();
    for (const [x, y] of Object.values(moves)) {
      context.moveTo(pen.x + x * penWidth * 0.7, pen.y + y * penWidth * 0.7);
      context.lineTo(pen.x + x * penWidth * 1.3, pen.y + y * penWidth * 1.3);
    }
    context.stroke();
  };
  redraw();

  return {
    image: () => digit ?? imageOf(strokes),
    clear,
    show(image) {
      strokes = [];
      pen.isDown = false;
      digit = image;
      changed();
    },
    redraw,
  };
}

/** Draws an image of the data set, one unit per pixel. */
export function drawImage(
  context: CanvasRenderingContext2D,
  image: Float32Array,
  color: string,
): void {
  context.fillStyle = color;
  image.forEach((ink, i) => {
    if (ink === 0) return;
    context.globalAlpha = ink;
    context.fillRect(i % side, Math.floor(i / side), 1, 1);
  });
  context.globalAlpha = 1;
}
